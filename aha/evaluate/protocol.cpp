#include "aha/evaluate/protocol.h"

#include <algorithm>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/shipped.h"
#include "aha/base/toml.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

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
      .choices({"auc10", "mean_k", "trapezoid"})
      .add("ties", p.ties, "which of equal pixels goes first")
      .choices({"index", "reverse", "jitter"})
      .add("references", p.references, "what replaces removed pixels")
      .choices({"black", "mean", "blur"})
      .nest("", fields(p.reference));
}

std::vector<std::string> protocol_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(protocols_folder(), error))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

Protocol protocol_named(const std::string& name) {
  const auto names = protocol_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw unknown_name_error("protocol", name, names);
  return protocol_from_file((protocols_folder() / (name + ".toml")).string());
}

Protocol protocol_from_file(const std::string& path) {
  Protocol protocol;
  protocol.name = fs::path(path).stem().string();
  set_all_from_json(fields(protocol), json_from_toml(path), path);
  if (protocol.area == "auc10" && protocol.steps != 10)
    throw input_error("{}: expected steps = 10 with area = \"auc10\", found {}", path, protocol.steps);
  if (protocol.references.empty()) throw input_error("{}: expected one reference or more, found none", path);
  return protocol;
}

SweepOptions sweep_options(const Protocol& protocol, ScoreKind score) {
  return {protocol.steps, area_rule_from_text(protocol.area), tie_rule_from_name(protocol.ties), score};
}

}  // namespace aha
