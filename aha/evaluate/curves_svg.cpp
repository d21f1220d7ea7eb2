#include "aha/evaluate/curves_svg.h"

#include <algorithm>
#include <cmath>

#include "aha/evaluate/table.h"
#include "aha/image/draw.h"
#include "aha/image/text.h"

namespace aha {
namespace {

constexpr double kPanelWidth = 360, kPanelHeight = 260, kLeft = 48, kTop = 56, kBelow = 46, kGap = 56,
                 kLegendWidth = 190;
constexpr double kTextSize = 12;
constexpr Color kInk = {51, 51, 51}, kGridColor = {221, 221, 221};

// What a figure consists of, in the order it is drawn.
struct FigureLine {
  std::vector<Point> points;
  std::string color;  // empty = of the grid
  double width = 1;
  std::string name = {};            // of a curve: its method
  std::vector<double> values = {};  // of a curve, at its points
};
struct FigureText {
  double x, y;  // of the baseline
  std::string text;
  Align align = Align::kLeft;
  bool bold = false;
};
struct Figure {
  double width = 0, height = 0;
  std::vector<FigureLine> lines;
  std::vector<FigureText> texts;
};

// One diagram: shares removed across, probability up.
struct Panel {
  double x, y, highest;
  double px(double removed) const { return x + removed * kPanelWidth; }
  double py(double probability) const { return y + kPanelHeight * (1 - probability / highest); }

  void add_axes(Figure& figure, const std::string& title, const std::string& score) const {
    figure.texts.push_back({x, y - 34, title, Align::kLeft, true});
    figure.texts.push_back({x - 36, y - 12, score + " of the class"});
    figure.texts.push_back({x + kPanelWidth / 2, y + kPanelHeight + 36, "pixels removed", Align::kCenter});
    for (int i = 0; i <= 5; ++i) {
      const double across = px(i / 5.0), value = highest * i / 5, up = py(value);
      figure.lines.push_back({{{across, y}, {across, y + kPanelHeight}}, ""});
      figure.lines.push_back({{{x, up}, {x + kPanelWidth, up}}, ""});
      figure.texts.push_back({across, y + kPanelHeight + 16, fmt::format("{} %", 20 * i), Align::kCenter});
      figure.texts.push_back({x - 6, up + 4, fmt::format("{:.2f}", value), Align::kRight});
    }
  }

  void add_curve(Figure& figure, const std::vector<double>& curve, int steps, const std::string& color,
                 const std::string& name) const {
    FigureLine line{{}, color, 1.8, name, curve};
    for (size_t i = 0; i < curve.size(); ++i)
      line.points.push_back({px(static_cast<double>(i) / steps), py(curve[i])});
    if (!curve.empty()) figure.lines.push_back(std::move(line));
  }
};

Figure curves_figure(const Evaluation& e, const std::string& explained) {
  const int steps = e.settings["protocol"]["steps"].get<int>();
  const auto rows = ranked_rows(e.summary, explained);
  double highest = 0.1;
  for (const auto* row : rows)
    for (const auto* curve : {&row->mean_curves.top, &row->mean_curves.bottom})
      for (const double value : *curve) highest = std::max(highest, value);
  highest = highest > 1 ? std::ceil(highest) : std::ceil(highest * 10) / 10;  // logits may be above 1

  const Panel left{kLeft, kTop, highest}, right{kLeft + kPanelWidth + kGap, kTop, highest};
  const double legend = right.x + kPanelWidth + 20;
  Figure figure;
  figure.width = legend + kLegendWidth;
  figure.height = std::max(kTop + kPanelHeight + kBelow, kTop + 20 + 18.0 * static_cast<double>(rows.size()));
  const std::string score = e.settings.value("score", "softmax probability");
  left.add_axes(figure, "most important removed first (lower is better)", score);
  right.add_axes(figure, "least important removed first (higher is better)", score);
  for (size_t i = 0; i < rows.size(); ++i) {
    left.add_curve(figure, rows[i]->mean_curves.top, steps, method_color(i), rows[i]->method);
    right.add_curve(figure, rows[i]->mean_curves.bottom, steps, method_color(i), rows[i]->method);
    const double y = kTop + 10 + 18.0 * static_cast<double>(i);
    figure.lines.push_back({{{legend, y}, {legend + 18, y}}, method_color(i), 3});
    figure.texts.push_back(
        {legend + 24, y + 4,
         shortened(rows[i]->method, static_cast<int>(kLegendWidth) - 28, {kTextSize, kInk, false})});
  }
  return figure;
}

Color color_from_hex(const std::string& hex) {
  const auto part = [&](int at) { return static_cast<uint8_t>(std::stoi(hex.substr(at, 2), nullptr, 16)); };
  return hex.empty() ? kGridColor : Color{part(1), part(3), part(5)};
}

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
  // Okabe and Ito's seven that are seen on white and on black, told apart by color-blind eyes too, then hues
  // by the golden angle.
  static constexpr const char* kColors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                            "#e69f00", "#56b4e9", "#8f7f00"};
  if (n < std::size(kColors)) return kColors[n];
  const double hue = std::fmod(137.5 * static_cast<double>(n), 360) / 60;
  const auto part = [&](double shift) {  // of a color with saturation 60 % and lightness 45 %
    const double at = std::fmod(hue + shift, 6);
    return static_cast<int>(255 * (0.18 + 0.54 * std::clamp(std::abs(at - 3) - 1, 0.0, 1.0)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", part(0), part(4), part(2));
}

std::string curves_svg(const Evaluation& e, const std::string& explained) {
  const Figure figure = curves_figure(e, explained);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" class=\"curves\" data-steps=\"{3}\">\n"
      "<style>.curves text{{font:{2:.0f}px sans-serif;fill:#333}} .curves .title{{font-weight:bold}} "
      ".curves .paper{{fill:#fff}} .curves .grid{{stroke:#ddd}} .curves polyline{{fill:none}} "
      "@media (prefers-color-scheme:dark){{.curves text{{fill:#ddd}} .curves .paper{{fill:#1b1b1b}} "
      ".curves .grid{{stroke:#444}}}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n",
      figure.width, figure.height, kTextSize, e.settings["protocol"]["steps"].get<int>());
  for (const auto& line : figure.lines) {
    std::string points, values;
    for (const auto& p : line.points) points += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
    for (const double value : line.values) values += fmt::format("{:.4f} ", value);
    const std::string look =
        line.color.empty() ? "class=\"grid\""
                           : fmt::format("stroke=\"{}\" stroke-width=\"{:.1f}\"", line.color, line.width);
    const std::string curve =
        line.name.empty() ? ""
                          : fmt::format(" data-name=\"{}\" data-values=\"{}\"", escaped(line.name), values);
    out += fmt::format("<polyline points=\"{}\" {}{}/>\n", points, look, curve);
  }
  constexpr const char* kAnchors[] = {"start", "middle", "end"};
  for (const auto& text : figure.texts)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", text.x, text.y,
                       kAnchors[static_cast<int>(text.align)], text.bold ? " class=\"title\"" : "",
                       escaped(text.text));
  return out + "</svg>\n";
}

Image curves_image(const Evaluation& e, const std::string& explained, double scale) {
  const Figure figure = curves_figure(e, explained);
  Image image = plain_image(static_cast<int>(std::lround(scale * figure.width)),
                            static_cast<int>(std::lround(scale * figure.height)));
  for (const auto& line : figure.lines) {
    std::vector<Point> points;
    for (const Point& point : line.points) points.push_back({scale * point.x, scale * point.y});
    draw_line(image, points, {scale * line.width, color_from_hex(line.color)});
  }
  for (const auto& text : figure.texts) {
    const TextStyle style{scale * kTextSize, kInk, text.bold};
    draw_text(image, static_cast<int>(std::lround(scale * text.x)),
              static_cast<int>(std::lround(scale * text.y)) - line_height(style) * 4 / 5, text.text, style,
              text.align);
  }
  return image;
}

}  // namespace aha
