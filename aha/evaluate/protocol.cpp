#include "aha/evaluate/protocol.h"

#include <algorithm>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/shipped.h"
#include "aha/base/toml.h"
#include "aha/perturb/reference.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kReferenceNames = {"black", "mean", "blur", "gray"};
const std::vector<std::string> kTieNames = {"index", "reverse", "jitter"};

// Settings that no stored figure depends on: they choose and sum up.
constexpr const char* kNotOfRows[] = {
    "summary",     "metrics",          "deletion-references", "insertion-references",
    "resize",      "correct-only",     "least-probability",   "most-per-class",
    "most-images", "blur-last-kernel", "blur-hidden"};

void check_protocol(const Protocol& protocol, const std::string& where) {
  if (protocol.area == "auc10" && protocol.steps != 10)
    throw input_error("{}: expected steps = 10 with area = \"auc10\", found {}", where, protocol.steps);
  if (protocol.area == "inner" && protocol.steps < 3)
    throw input_error("{}: expected 3 steps or more with area = \"inner\", found {}", where, protocol.steps);
  if (protocol.references.empty()) throw input_error("{}: expected one reference or more, found none", where);
  for (const auto* list : {&protocol.deletion_references, &protocol.insertion_references})
    for (const auto& name : *list)
      if (std::find(protocol.references.begin(), protocol.references.end(), name) ==
          protocol.references.end())
        throw input_error("{}: expected references of deletion and insertion among {}, found {}", where,
                          list_some(protocol.references), name);
}

fs::path protocols_folder() {
  return shipped({"AHA_PROTOCOLS", "protocols", "protocols", "paper.toml"});
}

}  // namespace

Fields fields(Protocol& p) {
  return Fields()
      .add("summary", p.summary, "one line")
      .add("steps", p.steps, "equal shares in which the pixels are removed")
      .range(2, 100000)
      .add("area", p.area, "how a curve becomes a number")
      .choices(area_rule_names())
      .add("ties", p.ties, "which of equal pixels goes first")
      .choices(kTieNames)
      .add("references", p.references, "what replaces removed pixels")
      .choices(kReferenceNames)
      .nest("", fields(p.reference))
      .add("blur-last-kernel", p.reference.last_kernel_px,
           "widest kernel of the adaptive blur in pixels of 224; images that need a wider one are left out")
      .range(3, 223)
      .add("blur-hidden", p.reference.hidden_probability,
           "probability of the class at which the adaptive blur is strong enough")
      .range(0, 1)
      .add("metrics", p.metrics, "metrics where the call names none")
      .add("deletion-references", p.deletion_references, "references of deletion and positive; empty = all")
      .choices(kReferenceNames)
      .add("insertion-references", p.insertion_references,
           "references of insertion and negative; empty = all")
      .choices(kReferenceNames)
      .add("resize", p.resize, "how images get to the input's size: as the target says, or stretched")
      .choices({"target", "stretch"})
      .add("correct-only", p.correct_only, "only images whose label is the predicted class")
      .add("least-probability", p.least_probability, "only images whose predicted class has this much")
      .range(0, 1)
      .add("most-per-class", p.most_per_class, "images of one predicted class, the first ones; 0 = all")
      .range(0, 1e9)
      .add("most-images", p.most_images, "images, the first ones; 0 = all")
      .range(0, 1e15);
}

bool Protocol::selects() const {
  return correct_only || least_probability > 0 || most_per_class > 0 || most_images > 0 ||
         uses_adaptive_blur(references, reference);
}

Fields fields(ProtocolChanges& c) {
  return Fields()
      .add("steps", c.steps,
           "equal shares in which the pixels are removed; default: the protocol's, as below")
      .range(2, 100000)
      .add("area", c.area, "how a curve becomes a number")
      .choices(area_rule_names())
      .add("ties", c.ties, "which of equal pixels goes first")
      .choices(kTieNames)
      .add("blur-kind", c.blur, "kind of blur")
      .choices({"gaussian", "rise", "adaptive"})
      .add("blur-sigma", c.blur_sigma, "width of the blur in pixels; 0 = by its kind and the image's size")
      .range(0, 10000)
      .add("blur-kernel", c.blur_kernel, "taps of the blur in pixels, odd; 0 = by its kind and sigma")
      .range(0, 20001)
      .add("deletion-references", c.deletion_references, "references of deletion and positive")
      .choices(kReferenceNames)
      .add("insertion-references", c.insertion_references, "references of insertion and negative")
      .choices(kReferenceNames);
}

Protocol changed(Protocol p, const ProtocolChanges& c) {
  if (c.steps > 0) p.steps = c.steps;
  if (!c.area.empty()) p.area = c.area;
  if (!c.ties.empty()) p.ties = c.ties;
  if (!c.blur.empty()) p.reference.blur = c.blur;
  if (c.blur_sigma >= 0) p.reference.sigma_px = c.blur_sigma;
  if (c.blur_kernel >= 0) p.reference.kernel_px = c.blur_kernel;
  const bool of_each = !c.deletion_references.empty() || !c.insertion_references.empty();
  if (!c.references.empty()) {
    p.references = c.references;
    p.deletion_references = p.insertion_references = {};
  }
  if (!c.deletion_references.empty()) p.deletion_references = c.deletion_references;
  if (!c.insertion_references.empty()) p.insertion_references = c.insertion_references;
  if (of_each && c.references.empty())  // whatever either of them names
    for (const auto* list : {&p.deletion_references, &p.insertion_references})
      for (const auto& name : *list)
        if (std::find(p.references.begin(), p.references.end(), name) == p.references.end())
          p.references.push_back(name);
  check_protocol(p, "protocol " + p.name);
  return p;
}

std::vector<std::string> protocol_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(protocols_folder(), error))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Protocol protocol_named(const std::string& spec) {
  const size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  const auto names = protocol_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw unknown_name_error("protocol", name, names);
  Protocol protocol = protocol_from_file((protocols_folder() / (name + ".toml")).string());
  if (colon == std::string::npos) return protocol;
  set_all_from_spec(fields(protocol), std::string_view(spec).substr(colon + 1), "protocol " + name);
  protocol.name = spec;
  check_protocol(protocol, "protocol " + name);
  return protocol;
}

Protocol protocol_from_file(const std::string& path) {
  Protocol protocol;
  protocol.name = fs::path(path).stem().string();
  set_all_from_json(fields(protocol), json_from_toml(path), path);
  check_protocol(protocol, path);
  return protocol;
}

nlohmann::json json_of_rows(const Protocol& protocol) {
  Protocol copy = protocol;
  nlohmann::json rules = json_from_fields(fields(copy));
  for (const char* name : kNotOfRows) rules.erase(name);
  return rules;
}

const std::vector<std::string>& references_of(const Protocol& protocol, bool higher_is_better) {
  const auto& own = higher_is_better ? protocol.insertion_references : protocol.deletion_references;
  return own.empty() ? protocol.references : own;
}

SweepOptions sweep_options(const Protocol& protocol, ScoreKind score) {
  return {protocol.steps, area_rule_from_text(protocol.area), tie_rule_from_name(protocol.ties), score};
}

}  // namespace aha
