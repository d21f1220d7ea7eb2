#include "aha/evaluate/terminal_table.h"

#include <algorithm>
#include <cmath>

#include "aha/base/terminal.h"

namespace aha {
namespace {

using Align = TextTable::Align;

// How much of a figure is shown: the first form that fits is taken.
struct FigureForm {
  int digits = 4;
  bool interval = true;
};
constexpr FigureForm kForms[] = {{4, true}, {3, true}, {3, false}};

std::string figure_text(const Summary& s, const MethodSummary& row, const MetricRecord& metric,
                        const FigureForm& form) {
  const auto& m = row.metrics.at(metric.name);
  if (m.images == 0) return "";
  constexpr const char* kPlaces[] = {" ", "¹", "²", "³"};
  const int place = place_among(s, row, metric);
  std::string text = fmt::format("{:.{}f}{}{}", m.value.mean, form.digits, place <= 3 ? kPlaces[place] : " ",
                                 m.optimized ? "†" : " ");
  if (form.interval)
    text += fmt::format("[{:.{}f}, {:.{}f}]", m.value.low, form.digits, m.value.high, form.digits);
  if (!std::isnan(m.place)) text += fmt::format(" {:>3.0f} %", m.place);
  return text;
}

TextTable figures_table(const Summary& s, const std::string& explained, const FigureForm& form) {
  std::vector<TextTable::Column> columns = {{"method", Align::kLeft}};
  for (const auto& metric : s.metrics) columns.push_back({metric.name + " " + up_or_down(metric)});
  columns.push_back({"time", Align::kRight, false});
  columns.push_back({"passes", Align::kRight, false});
  columns.push_back({"rank", Align::kRight, false});
  columns.push_back({"dropped", Align::kRight, false});
  TextTable table(columns);
  const auto groups = grouped_rows(s, explained);
  for (const auto& [group, rows] : groups) {
    if (groups.size() > 1) table.heading(title_of(group));
    for (const auto* row : rows) {
      std::vector<std::string> cells = {row->method};
      for (const auto& metric : s.metrics) cells.push_back(figure_text(s, *row, metric, form));
      cells.push_back(seconds_text(row->timing));
      cells.push_back(text_from_passes(row->passes));
      cells.push_back(row->rank.mean > 0 ? fmt::format("{:.1f}", row->rank.mean) : "");
      cells.push_back(dropped_text(*row));
      const auto is_best = [&](const MetricRecord& metric) { return place_among(s, *row, metric) == 1; };
      const bool best = std::any_of(s.metrics.begin(), s.metrics.end(), is_best);
      table.row(std::move(cells), best ? Style::kGood : Style::kPlain);
    }
  }
  return table;
}

TextTable rivals_table(const Summary& s, const std::string& explained) {
  TextTable table({{"best of", Align::kLeft},
                   {"method", Align::kLeft},
                   {"before", Align::kLeft},
                   {"by"},
                   {"p (Holm)"},
                   {"wins"},
                   {"detectable", Align::kRight, false}});
  for (const auto& metric : s.metrics)
    for (const auto* row : ranked_rows(s, explained)) {
      const auto& m = row->metrics.at(metric.name);
      if (place_among(s, *row, metric) != 1 || m.rival.empty()) continue;
      const auto& d = m.difference.difference;
      table.row({metric.name, row->method, m.rival,
                 fmt::format("{:+.4f} [{:+.4f}, {:+.4f}]", d.mean, d.low, d.high),
                 fmt::format("{:.2g}", m.corrected_p), fmt::format("{:.0f} %", 100 * m.difference.win_rate),
                 fmt::format("{:.4f}", m.detectable)});
    }
  return table;
}

}  // namespace

std::string table_text(const Evaluation& e, size_t width, bool color) {
  const Summary& s = e.summary;
  std::string out =
      wrapped(fmt::format("{} on {}: {} of {} images, protocol {}, {}",
                          e.settings["target"]["name"].get<std::string>(),
                          e.settings["data"].get<std::string>(), s.images.size(), s.asked,
                          e.settings["protocol"]["name"].get<std::string>(), references_text(s)),
              width, 0) +
      "\n";
  for (const auto& explained : s.explained) {
    out += "\n" +
           styled(fmt::format("Explaining the {} class", explained == "truth" ? "true" : "predicted"),
                  Style::kBold, color) +
           "\n";
    const auto form = std::find_if(std::begin(kForms), std::end(kForms) - 1, [&](const FigureForm& one) {
      return figures_table(s, explained, one).fits(width);
    });
    out += figures_table(s, explained, *form).text(width, color);
    if (s.methods.size() > 1) out += "\n" + rivals_table(s, explained).text(width, color);
  }
  if (!s.break_even.empty()) {
    out += "\n" +
           styled(fmt::format("Maps until {:.0f} s of training have paid off", s.training_seconds),
                  Style::kBold, color) +
           "\n";
    TextTable table({{"explainer", Align::kLeft}, {"instead of", Align::kLeft}, {"maps"}});
    for (const auto& one : s.break_even) table.row({one.method, one.slower, maps_text(one.maps)});
    out += table.text(width, color);
  }
  out += "\n";
  for (const auto& line : legend_of(s)) out += "- " + wrapped(line, width, 2) + "\n";
  for (const auto& line : s.warnings) out += "- " + wrapped(line, width, 2) + "\n";
  return out;
}

}  // namespace aha
