#include "aha/evaluate/audit_remarks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "aha/base/error.h"

namespace aha {
namespace {

// "aha:T=3:guard=off:blur=2" -> T = 3, whole "aha:blur=2:guard=off", plain "aha:blur=2".
struct RefinedLabel {
  int steps = 0;
  std::string whole, plain;  // without T; and without any option that matters only where T > 0
};

RefinedLabel refined_label(const std::string& label) {
  static const std::set<std::string> only_refined = {
      "refine", "lr",       "S",     "grids",     "guard",      "budget", "head-steps",
      "map-lr", "map-grid", "moves", "optimizer", "references", "spread", "smoothness"};
  RefinedLabel out;
  std::set<std::string> options, plain;
  size_t begin = std::min(label.find(':'), label.size());
  out.whole = out.plain = label.substr(0, begin);
  while (begin < label.size()) {
    const size_t end = std::min(label.find(':', begin + 1), label.size());
    const std::string option = label.substr(begin + 1, end - begin - 1),
                      name = option.substr(0, option.find('='));
    begin = end;
    if (name == "T") {
      std::from_chars(option.data() + 2, option.data() + option.size(), out.steps);
      continue;
    }
    options.insert(":" + option);
    if (!only_refined.contains(name)) plain.insert(":" + option);
  }
  for (const auto& option : options) out.whole += option;
  for (const auto& option : plain) out.plain += option;
  return out;
}

// "T = 3 +0.0312, loses on 27 %"
std::string gain_text(int steps, const std::vector<double>& refined, const std::vector<double>& plain) {
  double sum = 0;
  int64_t lost = 0, n = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (!std::isfinite(refined[i]) || !std::isfinite(plain[i])) continue;
    sum += refined[i] - plain[i];
    lost += refined[i] < plain[i];
    ++n;
  }
  if (n == 0) return "";
  return fmt::format("T = {} {:+.4f}, loses on {:.0f} %", steps, sum / static_cast<double>(n),
                     100 * static_cast<double>(lost) / static_cast<double>(n));
}

void add_refinement_gains(const Summary& s, const std::string& explained, std::vector<std::string>& out) {
  std::map<std::string, std::map<int, std::string>> gains;  // by label without T, then by T
  for (const auto& method : s.methods) {
    const RefinedLabel label = refined_label(method);
    if (label.steps == 0) continue;
    const auto base = std::ranges::find_if(s.methods, [&](const std::string& other) {
      const RefinedLabel found = refined_label(other);
      return found.steps == 0 && found.plain == label.plain;
    });
    if (base == s.methods.end()) continue;
    const auto &mine = s.row(method, explained).metrics.at("ins-del"),
               &plain = s.row(*base, explained).metrics.at("ins-del");
    if (auto text = gain_text(label.steps, mine.per_image, plain.per_image); !text.empty())
      gains[label.whole][label.steps] = std::move(text);
  }
  for (const auto& [name, by_steps] : gains) {
    std::vector<std::string> texts;
    for (const auto& [steps, text] : by_steps) texts.push_back(text);
    out.push_back(fmt::format("refinement of {} against T = 0, ins-del{}: {}", name,
                              s.explained.size() > 1 ? " (" + explained + " class)" : "",
                              fmt::join(texts, "; ")));
  }
}

void add_void_tests(const Summary& s, const std::string& explained, std::vector<std::string>& out) {
  constexpr double kRounding = 1e-9;  // of a correlation of 50,176 ranks with themselves
  const std::string name = "parameter-randomization";
  for (const auto& method : s.methods) {
    const auto& metrics = s.row(method, explained).metrics;
    const auto at = metrics.find(name);
    if (at == metrics.end()) continue;
    std::vector<double> values = at->second.per_image;
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    if (!values.empty() && std::ranges::all_of(values, [&](double v) { return v >= 1 - kRounding; }))
      out.push_back(
          fmt::format("{} of {} is 1 by construction: its maps never look at the target's weights, so that "
                      "the test is void",
                      name, method));
  }
}

}  // namespace

std::vector<std::string> audit_remarks(const Summary& s) {
  std::vector<std::string> out;
  const bool has_ins_del =
      std::ranges::any_of(s.metrics, [](const MetricRecord& metric) { return metric.name == "ins-del"; });
  for (const auto& explained : s.explained) {
    if (has_ins_del) add_refinement_gains(s, explained, out);
    add_void_tests(s, explained, out);
  }
  return out;
}

}  // namespace aha
