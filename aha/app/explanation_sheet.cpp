#include "aha/app/explanation_sheet.h"

#include <filesystem>

#include "aha/image/summary_sheet.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

// "1 forward and 1 backward pass": on a slide nobody explains F and B.
std::string spelled_out(const Passes& passes) {
  if (passes.forwards == 0 && passes.backwards == 0) return "no pass";
  const bool one = passes.backwards > 0 ? passes.backwards == 1 : passes.forwards == 1;
  return fmt::format("{:g} forward{} pass{}", passes.forwards,
                     passes.backwards > 0 ? fmt::format(" and {:g} backward", passes.backwards) : "",
                     one ? "" : "es");
}

// Mean over the references.
SheetCurves curves_of(const MapScore& score) {
  SheetCurves out{score.deletion, score.insertion, {}, {}};
  for (const auto& curves : score.curves) {
    out.removed_top.resize(curves.top.size());
    out.removed_bottom.resize(curves.bottom.size());
    const double share = 1 / static_cast<double>(score.curves.size());
    for (size_t i = 0; i < curves.top.size(); ++i) out.removed_top[i] += share * curves.top[i];
    for (size_t i = 0; i < curves.bottom.size(); ++i) out.removed_bottom[i] += share * curves.bottom[i];
  }
  return out;
}

}  // namespace

std::string text_from_seconds(double seconds) {
  if (seconds < 0.00005) return "< 0.1 ms";
  if (seconds < 0.00995) return fmt::format("{:.1f} ms", 1e3 * seconds);
  return seconds < 0.9995 ? fmt::format("{:.0f} ms", 1e3 * seconds) : fmt::format("{:.1f} s", seconds);
}

std::string short_name(const ClassifierInfo& target) {
  const size_t colon = target.name.find(':');
  const bool a_file = target.architecture == "script" || target.architecture == "onnx";
  if (colon != std::string::npos && !a_file) return target.name.substr(0, colon);
  return std::filesystem::path(target.name).filename().string();
}

std::string short_name(const ChosenClass& chosen) {
  return chosen.name.empty() ? fmt::format("class {}", chosen.index)
                             : chosen.name.substr(0, chosen.name.find(','));
}

Image sheet_of_explanation(const Explanation& e, const KeptPhoto& photo, const ClassifierInfo& target,
                           const HeatOptions& heat) {
  const Tensor& map = e.scored.map;
  SummarySheet sheet;
  sheet.photo = photo.image;
  sheet.seen = photo.seen;
  sheet.values = {map.data_ptr<float>(), static_cast<size_t>(map.numel())};
  sheet.width = static_cast<int>(map.size(1));
  sheet.height = static_cast<int>(map.size(0));
  sheet.title = short_name(e.chosen);
  sheet.probability = fmt::format("{:.1f} %", 100 * e.chosen.probability);
  const int steps = static_cast<int>(e.scored.made.steps);
  sheet.subtitle =
      fmt::format("{}{} on {}  ·  {}, {}", e.method,
                  steps == 0 ? "" : fmt::format(", refined {} step{}", steps, steps == 1 ? "" : "s"),
                  short_name(target), spelled_out(e.scored.made.passes), text_from_seconds(e.scored.seconds));
  sheet.caption = std::filesystem::path(e.image).filename().string();
  if (e.scored.score) sheet.curves = curves_of(*e.scored.score);
  if (e.random) sheet.random = curves_of(*e.random);
  return summary_sheet(sheet, heat);
}

}  // namespace aha
