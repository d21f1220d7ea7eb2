#include "aha/app/inspect.h"

#include "aha/networks/preprocess.h"

namespace aha {

nlohmann::json json_from_summary(const WeightSummary& s) {
  nlohmann::json tensors = nlohmann::json::array();
  for (const auto& t : s.tensors)
    tensors.push_back({{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}});
  nlohmann::json out = {{"file", s.path},
                        {"architecture", s.architecture},
                        {"family", s.family},
                        {"source", s.source},
                        {"parameters", s.parameters},
                        {"values", s.values},
                        {"classes", s.classes},
                        {"dtypes", s.dtypes},
                        {"remark", s.remark},
                        {"tensors", tensors}};
  out["input"] = s.input ? nlohmann::json(card_json_from_input(*s.input)) : nlohmann::json();
  return out;
}

std::string text_from_summary(const WeightSummary& s, bool with_tensors) {
  std::string out = s.path + "\n";
  const auto line = [&](std::string_view what, const std::string& value) {
    out += fmt::format("  {:<13} {}\n", what, value);
  };
  if (s.family.empty()) {
    line("network", "not recognized: " + s.remark);
  } else {
    line("network", s.architecture.empty() ? s.family + ", of no known size" : s.architecture);
    line("names of", s.source);
    line("parameters", std::to_string(s.parameters));
    if (s.classes > 0) line("classes", std::to_string(s.classes));
    if (s.input) line("input", text_from_input(*s.input));
    if (!s.architecture.empty()) line("use as", fmt::format("--target {}:{}", s.architecture, s.path));
  }
  std::string types;
  for (const auto& [type, count] : s.dtypes)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
  line("tensors", fmt::format("{} ({} values)", types, s.values));
  if (with_tensors)
    for (const auto& t : s.tensors)
      out += fmt::format("    {:<60} {:<5} {}\n", t.name, t.dtype, text_from_shape(t.shape));
  return out;
}

}  // namespace aha
