#include "aha/methods/catalog.h"

#include <set>
#include <stdexcept>

#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/base/rng.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class BlurredMethod : public Method {
 public:
  BlurredMethod(std::unique_ptr<Method> inner, double sigma_px)
      : inner_(std::move(inner)), sigma_px_(sigma_px) {}
  void prepare(const MethodContext& context) override { inner_->prepare(context); }
  bool learned() const override { return inner_->learned(); }
  bool timed() const override { return inner_->timed(); }
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    return blurred(inner_->attribute(pixels, classes, streams, context));
  }
  bool shares_work_with(const Method& other) const override {
    return other.identity() == inner_->identity() || inner_->shares_work_with(other);
  }
  std::vector<Attribution> attribute_shared(std::span<Method* const> others, const Tensor& pixels,
                                            const Tensor& classes, std::span<const uint64_t> streams,
                                            const Context& context) override {
    std::vector<Method*> of_inner;
    for (Method* other : others)
      if (other->identity() != inner_->identity()) of_inner.push_back(other);
    const auto inner = inner_->attribute_shared(of_inner, pixels, classes, streams, context);
    std::vector<Attribution> all = {blurred(inner[0])};
    size_t next = 1;
    for (Method* other : others)
      all.push_back(other->identity() == inner_->identity() ? inner[0] : inner[next++]);
    return all;
  }

 private:
  Attribution blurred(Attribution plain) const {
    plain.maps = blurred_maps(plain.maps, sigma_px_);
    return plain;
  }

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

// An option given twice is a contradiction: `given` is ":key=value:key=value".
void check_given_once(const std::string& given, const nlohmann::json& options, const std::string& where) {
  std::set<std::string> keys;
  for (const auto& [key, value] : options.items()) keys.insert(key);
  for (size_t at = 0; at != std::string::npos; at = given.find(':', at + 1)) {
    const std::string key = given.substr(at + 1, given.find_first_of("=:", at + 1) - at - 1);
    if (!keys.insert(key).second)
      throw input_error("{}: expected {} once, found it twice", where, printable(key));
  }
}

// The one list. A new method is one line here and one in records.h.
std::vector<MethodRecord>& all_methods() {
  static std::vector<MethodRecord> list = {
      aha_method(),      random_method(),     center_method(), sobel_method(),
      gradient_method(), smoothgrad_method(), ig_method(),     gradcam_method(),
      rollout_method(),  chefer_method(),     legrad_method(), rise_method(),
  };
  return list;
}

}  // namespace

const std::vector<MethodRecord>& method_catalog() {
  return all_methods();
}

void add_method(MethodRecord record) {
  for (const auto& known : all_methods())
    if (known.name == record.name)
      throw input_error("method {}: expected a name of its own, found one of the catalog", record.name);
  all_methods().push_back(std::move(record));
}

std::unique_ptr<Method> make_method(const std::string& spec, const MethodContext& context,
                                    const nlohmann::json& options) {
  const size_t colon = spec.find(':');
  const MethodRecord& record = record_of(spec.substr(0, colon));
  const std::string where = "method " + record.name;
  auto method = record.make();
  double blur_px = 0;
  Fields fields = method->fields();
  fields.add("blur", blur_px, "smooth the map with a Gaussian of this standard deviation in pixels; 0 = not")
      .range(0, 1000);
  if (colon != std::string::npos) {
    const std::string_view given = std::string_view(spec).substr(colon + 1);
    check_given_once(":" + std::string(given), options, where);
    set_all_from_spec(fields, given, where);
  }
  set_all_from_json(fields, options, where);
  check_fit(record, context);
  method->prepare(context);
  method->set_identity(record.name + json_from_fields(method->fields()).dump());
  if (blur_px == 0) return method;
  const std::string identity = fmt::format("{} blurred by {}", method->identity(), blur_px);
  auto blurred = std::make_unique<BlurredMethod>(std::move(method), blur_px);
  blurred->set_identity(identity);
  return blurred;
}

std::vector<Attribution> Method::attribute_shared(std::span<Method* const> others, const Tensor& pixels,
                                                  const Tensor& classes, std::span<const uint64_t> streams,
                                                  const Context& context) {
  if (!others.empty()) throw std::logic_error("this method shares work with no other");
  return {attribute(pixels, classes, streams, context)};
}

std::string text_from_passes(const Passes& p) {
  if (p.forwards == 0 && p.backwards == 0) return "0";
  return p.backwards == 0 ? fmt::format("{:g} F", p.forwards)
                          : fmt::format("{:g} F + {:g} B", p.forwards, p.backwards);
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

uint64_t image_stream(std::string_view id) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const unsigned char c : id) hash = (hash ^ c) * 0x100000001b3;
  return stream_id({hash});
}

}  // namespace aha
