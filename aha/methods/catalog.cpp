#include "aha/methods/catalog.h"

#include <stdexcept>

#include "aha/base/error.h"
#include "aha/base/rng.h"
#include "aha/methods/map_shape.h"
#include "aha/methods/records.h"
#include "aha/attribution/target_gradient.h"

namespace aha {
namespace {

class BlurredMethod : public Method {
 public:
  BlurredMethod(std::unique_ptr<Method> inner, double sigma_px)
      : inner_(std::move(inner)), sigma_px_(sigma_px) {}
  void prepare(const MethodContext& context) override { inner_->prepare(context); }
  MethodCost cost() const override { return inner_->cost(); }
  bool learned() const override { return inner_->learned(); }
  Tensor maps(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
              const Context& context) override {
    return blurred_maps(inner_->maps(pixels, classes, streams, context), sigma_px_);
  }
  bool meets(const Method& other) const override { return other.identity() == inner_->identity() || inner_->meets(other); }
  std::vector<Tensor> maps_and_met(std::span<Method* const> others, const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                                   const Context& context) override {
    std::vector<Method*> of_inner;
    for (Method* other : others)
      if (other->identity() != inner_->identity()) of_inner.push_back(other);
    const auto inner = inner_->maps_and_met(of_inner, pixels, classes, streams, context);
    std::vector<Tensor> all = {blurred_maps(inner[0], sigma_px_)};
    size_t next = 1;
    for (Method* other : others) all.push_back(other->identity() == inner_->identity() ? inner[0] : inner[next++]);
    return all;
  }

 private:
  std::unique_ptr<Method> inner_;
  double sigma_px_;
};

const MethodRecord& record_of(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& record : method_catalog()) {
    if (record.name == name) return record;
    names.push_back(record.name);
  }
  throw unknown_name_error("method", name, names);
}

void check_fit(const MethodRecord& record, const MethodContext& context) {
  if (record.fits(context)) return;
  std::vector<std::string> fitting;
  for (const auto& other : method_catalog())
    if (other.fits(context)) fitting.push_back(other.name);
  const auto& info = context.target.info();
  throw input_error("method {} needs {}, which {} ({}) does not offer; methods that fit it: {}", record.name,
                    record.needs, info.name, info.architecture, list_some(fitting, fitting.size()));
}

}  // namespace

const std::vector<MethodRecord>& method_catalog() {
  static const std::vector<MethodRecord> list = {
      aha_method(),      random_method(),     center_method(), sobel_method(),
      gradient_method(), smoothgrad_method(), ig_method(),     gradcam_method(),
      rollout_method(),  chefer_method(),     legrad_method(), rise_method(),
  };
  return list;
}

std::unique_ptr<Method> make_method(const std::string& spec, const MethodContext& context) {
  const size_t colon = spec.find(':');
  const MethodRecord& record = record_of(spec.substr(0, colon));
  auto method = record.make();
  double blur_px = 0;
  Fields fields = method->fields();
  fields.add("blur", blur_px, "smooth the map with a Gaussian of this standard deviation in pixels; 0 = not")
      .range(0, 1000);
  if (colon != std::string::npos)
    set_all_from_spec(fields, std::string_view(spec).substr(colon + 1), "method " + record.name);
  check_fit(record, context);
  method->prepare(context);
  method->set_identity(record.name + json_from_fields(method->fields()).dump());
  if (blur_px == 0) return method;
  const std::string identity = fmt::format("{} blurred by {}", method->identity(), blur_px);
  auto blurred = std::make_unique<BlurredMethod>(std::move(method), blur_px);
  blurred->set_identity(identity);
  return blurred;
}

std::vector<Tensor> Method::maps_and_met(std::span<Method* const> others, const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                                         const Context& context) {
  if (!others.empty()) throw std::logic_error("this method meets no other");
  return {maps(pixels, classes, streams, context)};
}

bool fits_any(const MethodContext&) {
  return true;
}
bool has_attention(const MethodContext& context) {
  return !attention_taps(context.target).empty();
}
bool has_feature_maps(const MethodContext& context) {
  return !feature_tap(context.target).empty();
}
bool has_attention_or_feature_maps(const MethodContext& context) {
  return has_attention(context) || has_feature_maps(context);
}

uint64_t picture_stream(std::string_view id) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const unsigned char c : id) hash = (hash ^ c) * 0x100000001b3;
  return stream_id({hash});
}

}  // namespace aha
