#include "aha/methods/catalog.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/base/rng.h"
#include "aha/methods/fitting.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

// The maps of another method, each changed: blurred, or turned round.
class ChangedMethod : public Method {
 public:
  using Change = std::function<Tensor(const Tensor&)>;
  ChangedMethod(std::unique_ptr<Method> inner, const std::string& described, Change change)
      : inner_(std::move(inner)), change_(std::move(change)) {
    set_identity(inner_->identity() + described);
  }
  bool learned() const override { return inner_->learned(); }
  bool timed() const override { return inner_->timed(); }
  void name_images(std::span<const std::string> names, std::span<const uint64_t> streams) override {
    inner_->name_images(names, streams);
  }
  std::string depends_on(const std::string& image) const override { return inner_->depends_on(image); }
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    return changed(inner_->attribute(pixels, classes, streams, context));
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
    std::vector<Attribution> all = {changed(inner[0])};
    size_t next = 1;
    for (Method* other : others)
      all.push_back(other->identity() == inner_->identity() ? inner[0] : inner[next++]);
    return all;
  }

 private:
  Attribution changed(Attribution plain) const {
    plain.maps = change_(plain.maps);
    return plain;
  }

  std::unique_ptr<Method> inner_;
  Change change_;
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
  if (record.kind == MethodKind::kLearned)
    throw input_error("method {}: {}", record.name, without_an_explainer(context));
  std::vector<std::string> fitting;
  for (const auto& other : method_catalog())
    if (other.fits(context) && other.argument.empty()) fitting.push_back(other.name);
  const auto& info = context.target.info();
  throw input_error("method {} needs {}, which {} ({}) does not offer; {} fits {}; methods that fit {}: {}",
                    record.name, record.needs, info.name, info.architecture, record.name,
                    targets_of(record.kind), info.name, list_some(fitting, fitting.size()));
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

// "DIR:blur=2" -> "DIR" and "blur=2": the text behind the name of a method with an argument. Options stand at
// the end; a path may have colons of its own.
std::pair<std::string, std::string> argument_and_options(const std::string& given, const Fields& fields,
                                                         const std::string& argument) {
  size_t end = given.size();
  for (size_t colon = given.rfind(':'); colon != std::string::npos && colon > 0;
       colon = given.rfind(':', colon - 1)) {
    const std::string key = given.substr(colon + 1, given.find('=', colon) - colon - 1);
    if (key == argument || !fields.find(key)) break;
    end = colon;
  }
  return {given.substr(0, end), end < given.size() ? given.substr(end + 1) : ""};
}

std::vector<MethodRecord> records_of(
    std::initializer_list<std::pair<MethodKind, std::vector<MethodRecord>>> groups) {
  std::vector<MethodRecord> all;
  for (const auto& [kind, records] : groups)
    for (const auto& record : records) all.emplace_back(record).kind = kind;
  return all;
}

// A method whose maps are searched or trained for these metrics.
MethodRecord optimizing(std::vector<std::string> metrics, MethodRecord record) {
  record.optimizes = std::move(metrics);
  return record;
}

// The one list. A new method is one line here and one in method_records.h.
std::vector<MethodRecord>& all_methods() {
  // clang-format off
  static std::vector<MethodRecord> list = records_of({
      {MethodKind::kLearned, {
          optimizing({"deletion", "insertion"}, aha_method()),
      }},
      {MethodKind::kTransformer, {
          rollout_method(),
          chefer_method(),
          logit_attribution_method(),
          legrad_method(),
          tis_method(),
          vit_cx_method(),
          raw_attention_method(),
          transformer_attribution_method(),
          trans_att_method(),
          bi_att_method(),
      }},
      {MethodKind::kTransformerOrConvNet, {
          gradcam_method(),
          optimizing({"deletion", "insertion", "mas-deletion", "mas-insertion", "rise-deletion",
                      "rise-insertion"}, mda_method()),
      }},
      {MethodKind::kConvNet, {
          cam_method(),
          gradcam_plus_method(),
          hirescam_method(),
          layercam_method(),
          scorecam_method(),
          ablationcam_method(),
      }},
      {MethodKind::kAny, {
          gradient_method(),
          smoothgrad_method(),
          ig_method(),
          rise_method(),
          occlusion_method(),
      }},
      {MethodKind::kCeiling, {
          optimizing({"deletion", "insertion"}, greedy_method()),
          optimizing({"deletion", "insertion"}, optimized_method()),
      }},
      {MethodKind::kControl, {
          random_method(),
          blurred_random_method(),
          center_method(),
          sobel_method(),
      }},
      {MethodKind::kGiven, {
          maps_method(),
      }},
  });
  // clang-format on
  return list;
}

struct KindTexts {
  const char *heading, *targets;
};

const KindTexts& texts_of(MethodKind kind) {
  static constexpr const char* kAnyTarget = "targets that have it";
  // In the order of the enumeration.
  static constexpr KindTexts kTexts[] = {
      {"Learned", "targets with an explainer"},
      {"For transformers", "vision transformers"},
      {"For ConvNets", "ConvNets whose feature maps are pooled (ConvNeXt, ResNet)"},
      {"For transformers and ConvNets", "vision transformers and ConvNets (ConvNeXt, ResNet)"},
      {"For any classifier", kAnyTarget},
      {"Ceilings", kAnyTarget},
      {"Controls", kAnyTarget},
      {"Made elsewhere", kAnyTarget},
  };
  return kTexts[static_cast<size_t>(kind)];
}

}  // namespace

const std::vector<MethodRecord>& method_catalog() {
  return all_methods();
}

const MethodRecord& method_record(const std::string& spec) {
  const std::string name = spec.substr(0, spec.find(':'));
  return name == "inverted" && name.size() < spec.size() ? method_record(spec.substr(name.size() + 1))
                                                         : record_of(name);
}

void add_method(MethodRecord record) {
  for (const auto& known : all_methods())
    if (known.name == record.name)
      throw input_error("method {}: expected a name of its own, found one of the catalog", record.name);
  all_methods().push_back(std::move(record));
}

std::string usage_of(const MethodRecord& record) {
  std::string argument = record.argument;
  for (char& c : argument) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return argument.empty() ? record.name : record.name + ":" + argument;
}

std::string heading_of(MethodKind kind) {
  return texts_of(kind).heading;
}

std::string targets_of(MethodKind kind) {
  return texts_of(kind).targets;
}

const std::vector<MethodForm>& method_forms() {
  static const std::vector<MethodForm> forms = {
      {"NAME:...:blur=SIGMA_PX",
       "the maps of any method, smoothed with a Gaussian of this standard deviation in pixels"},
      {"inverted:NAME:...", "the maps of any method turned round, a control: what was last is first"},
  };
  return forms;
}

std::vector<std::string> method_labels(const std::vector<std::string>& specs) {
  const auto short_one = [](std::string spec) {
    for (size_t at = 0; (at = spec.find("/:", at)) != std::string::npos;) spec.erase(at, 1);
    while (spec.ends_with('/')) spec.pop_back();
    const size_t slash = spec.rfind('/');
    if (slash == std::string::npos) return spec;
    return spec.substr(0, spec.rfind(':', slash) + 1) + spec.substr(slash + 1);
  };
  std::map<std::string, std::set<std::string>> by_label;
  for (const auto& spec : specs) by_label[short_one(spec)].insert(spec);
  std::vector<std::string> labels;
  for (const auto& spec : specs)
    labels.push_back(by_label[short_one(spec)].size() == 1 ? short_one(spec) : spec);
  return labels;
}

std::unique_ptr<Method> make_method(const std::string& spec, const MethodContext& context,
                                    const nlohmann::json& options) {
  const size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  std::string given = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (name == "inverted") {
    if (given.empty()) throw input_error("method inverted: expected inverted:METHOD, found no method");
    return std::make_unique<ChangedMethod>(make_method(given, context, options), " inverted",
                                           [](const Tensor& maps) { return -maps; });
  }
  const MethodRecord& record = record_of(name);
  const std::string where = "method " + record.name;
  auto method = record.make();
  double blur_px = 0;
  Fields fields = method->fields();
  fields.add("blur", blur_px, "smooth the map with a Gaussian of this standard deviation in pixels; 0 = not")
      .range(0, 1000);
  if (!record.argument.empty()) {
    const auto [argument, rest] = argument_and_options(given, fields, record.argument);
    if (argument.empty())
      throw input_error("{}: expected {}, found '{}'", where, usage_of(record), printable(spec));
    set_from_text(*fields.find(record.argument), argument, where);
    given = rest;
  }
  if (!given.empty() || spec.ends_with(':')) {
    check_given_once(":" + given, options, where);
    set_all_from_spec(fields, given, where);
  }
  set_all_from_json(fields, options, where);
  check_fit(record, context);
  method->prepare(context);
  method->set_identity(record.name + json_from_fields(method->fields()).dump());
  if (blur_px == 0) return method;
  return std::make_unique<ChangedMethod>(
      std::move(method), fmt::format(" blurred by {}", blur_px),
      [blur_px](const Tensor& maps) { return blurred_maps(maps, blur_px); });
}

std::vector<Attribution> Method::attribute_shared(std::span<Method* const> others, const Tensor& pixels,
                                                  const Tensor& classes, std::span<const uint64_t> streams,
                                                  const Context& context) {
  if (!others.empty()) throw std::logic_error("this method shares work with no other");
  return {attribute(pixels, classes, streams, context)};
}

std::string text_from_passes(const Passes& p) {
  if (p.forwards == 0 && p.backwards == 0) return "0";
  const auto rounded = [](double passes) { return std::round(100 * passes) / 100; };  // of many images
  return p.backwards == 0 ? fmt::format("{:g} F", rounded(p.forwards))
                          : fmt::format("{:g} F + {:g} B", rounded(p.forwards), rounded(p.backwards));
}

bool fits_any(const MethodContext&) {
  return true;
}
bool has_attention(const MethodContext& context) {
  return !attention_taps(context.target).empty();
}
bool is_vision_transformer(const MethodContext& context) {
  return context.target.prefix_tokens() > 0;
}
bool has_open_blocks(const MethodContext& context) {
  return context.target.opens_blocks();
}
bool has_feature_maps(const MethodContext& context) {
  return !feature_tap(context.target).empty();
}
bool has_attention_or_feature_maps(const MethodContext& context) {
  return has_attention(context) || has_feature_maps(context);
}

uint64_t image_stream(const Tensor& pixels) {
  const Tensor values = pixels.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a value at a time
  for (const float value : std::span(values.data_ptr<float>(), static_cast<size_t>(values.numel())))
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001b3;
  return stream_id({hash});
}

std::vector<uint64_t> image_streams(const Tensor& pixels) {
  std::vector<uint64_t> streams;
  for (int64_t b = 0; b < pixels.size(0); ++b) streams.push_back(image_stream(pixels[b]));
  return streams;
}

}  // namespace aha
