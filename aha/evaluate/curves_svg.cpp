#include "aha/evaluate/curves_svg.h"

#include <algorithm>
#include <cmath>

#include "aha/evaluate/table.h"

namespace aha {
namespace {

constexpr double kPanelWidth = 360, kPanelHeight = 260, kLeft = 48, kTop = 34, kGap = 56, kLegendWidth = 190;

// One diagram: shares removed across, probability up.
struct Panel {
  double x, y, highest;
  double px(double removed) const { return x + removed * kPanelWidth; }
  double py(double probability) const { return y + kPanelHeight * (1 - probability / highest); }

  std::string axes(const std::string& title) const {
    std::string out =
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"title\">{}</text>\n", x, y - 12, title);
    for (int i = 0; i <= 5; ++i) {
      const double share = i / 5.0, value = highest * i / 5;
      out += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" class=\"grid\"/>"
          "<text x=\"{0:.1f}\" y=\"{3:.1f}\" text-anchor=\"middle\">{4} %</text>\n",
          px(share), y, y + kPanelHeight, y + kPanelHeight + 16, 20 * i);
      out += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" class=\"grid\"/>"
          "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.2f}</text>\n",
          x, py(value), x + kPanelWidth, x - 6, py(value) + 4, value);
    }
    return out;
  }

  std::string line(const std::vector<double>& curve, int steps, const std::string& color) const {
    std::string points;
    for (size_t i = 0; i < curve.size(); ++i)
      points += fmt::format("{:.1f},{:.1f} ", px(static_cast<double>(i) / steps), py(curve[i]));
    return fmt::format("<polyline points=\"{}\" stroke=\"{}\"/>\n", points, color);
  }
};

}  // namespace

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= ' ' || c == '\n')
      out += c;
  }
  return out;
}

std::string method_color(size_t n) {
  // Okabe and Ito's eight, told apart by color-blind eyes too, then hues by the golden angle.
  static constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                            "#e69f00", "#56b4e9", "#000000", "#8f7f00"};
  if (n < std::size(kColors)) return kColors[n];
  return fmt::format("hsl({:.0f},60%,45%)", std::fmod(137.5 * static_cast<double>(n), 360));
}

std::string curves_svg(const Evaluation& e, const std::string& explained) {
  const int steps = e.settings["protocol"]["steps"].get<int>();
  const auto rows = ranked_rows(e.summary, explained);
  double highest = 0.1;
  for (const auto* row : rows)
    for (const auto* curve : {&row->mean_curves.top, &row->mean_curves.bottom})
      for (const double value : *curve) highest = std::max(highest, value);
  highest = std::min(1.0, std::ceil(highest * 10) / 10);

  const Panel left{kLeft, kTop, highest}, right{kLeft + kPanelWidth + kGap, kTop, highest};
  const double legend = right.x + kPanelWidth + 20, width = legend + kLegendWidth;
  const double height =
      std::max(kTop + kPanelHeight + 30, kTop + 20 + 18.0 * static_cast<double>(rows.size()));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n"
      "<style>text{{font:12px sans-serif;fill:#333}} .title{{font-weight:bold}} .grid{{stroke:#ddd}} "
      "polyline{{fill:none;stroke-width:1.8}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  out += left.axes("most important removed first (lower is better)");
  out += right.axes("least important removed first (higher is better)");
  for (size_t i = 0; i < rows.size(); ++i) {
    out += left.line(rows[i]->mean_curves.top, steps, method_color(i));
    out += right.line(rows[i]->mean_curves.bottom, steps, method_color(i));
    const double y = kTop + 10 + 18.0 * static_cast<double>(i);
    out += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{2:.1f}\" y2=\"{1:.1f}\" stroke=\"{3}\" "
        "stroke-width=\"3\"/>"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\">{6}</text>\n",
        legend, y, legend + 18, method_color(i), legend + 24, y + 4, escaped(rows[i]->method));
  }
  return out + "</svg>\n";
}

}  // namespace aha
