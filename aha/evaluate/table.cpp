#include "aha/evaluate/table.h"

#include <algorithm>
#include <cmath>

namespace aha {
namespace {

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string markdown_cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string latex_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '~' || c == '^') {
      out += c == '\\' ? "\\textbackslash{}" : c == '~' ? "\\textasciitilde{}" : "\\textasciicircum{}";
      continue;
    }
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

nlohmann::json json_from_metric(const MetricSummary& m) {
  nlohmann::json out = {{"mean", m.value.mean},     {"low", m.value.low},
                        {"high", m.value.high},     {"images", m.images},
                        {"optimized", m.optimized}, {"per_reference", m.per_reference}};
  if (!std::isnan(m.place)) out["place_percent"] = m.place;
  if (!m.rival.empty())
    out["rival"] = {{"method", m.rival},
                    {"difference", m.difference.difference.mean},
                    {"low", m.difference.difference.low},
                    {"high", m.difference.difference.high},
                    {"p", m.difference.p_value},
                    {"p_corrected", m.corrected_p},
                    {"win_rate", m.difference.win_rate},
                    {"detectable", m.detectable}};
  return out;
}

std::string class_title(const std::string& explained) {
  return explained == "predicted" ? "predicted class" : "true class";
}

}  // namespace

int place_among(const Summary& s, const MethodSummary& row, const MetricRecord& metric) {
  const double sign = metric.higher_is_better ? 1 : -1, mine = sign * row.metrics.at(metric.name).value.mean;
  if (row.group == CostGroup::kCeiling || row.metrics.at(metric.name).images == 0) return 0;
  return 1 + static_cast<int>(std::count_if(s.rows.begin(), s.rows.end(), [&](const MethodSummary& other) {
           return other.explained == row.explained && other.group != CostGroup::kCeiling &&
                  sign * other.metrics.at(metric.name).value.mean > mine;
         }));
}

std::string up_or_down(const MetricRecord& metric) {
  return metric.higher_is_better ? "↑" : "↓";
}

std::string seconds_text(const Timing& timing) {
  if (timing.runs == 0) return "";
  return timing.seconds < 1 ? fmt::format("{:.1f} ms", 1000 * timing.seconds)
                            : fmt::format("{:.2f} s", timing.seconds);
}

std::vector<const MethodSummary*> ranked_rows(const Summary& s, const std::string& explained) {
  const MetricRecord* by = &s.metrics.back();
  for (const auto& metric : s.metrics)
    if (!metric.parts.empty()) {
      by = &metric;
      break;
    }
  std::vector<const MethodSummary*> rows;
  for (const auto& row : s.rows)
    if (row.explained == explained) rows.push_back(&row);
  const double sign = by->higher_is_better ? 1 : -1;
  std::stable_sort(rows.begin(), rows.end(), [&](auto* a, auto* b) {
    return sign * a->metrics.at(by->name).value.mean > sign * b->metrics.at(by->name).value.mean;
  });
  return rows;
}

std::vector<RowGroup> grouped_rows(const Summary& s, const std::string& explained) {
  std::map<CostGroup, std::vector<const MethodSummary*>> by_group;
  for (const auto* row : ranked_rows(s, explained)) by_group[row->group].push_back(row);
  std::vector<RowGroup> out;
  for (auto& [group, rows] : by_group) out.push_back({group, std::move(rows)});
  return out;
}

std::string references_text(const Summary& s) {
  if (s.deletion_references == s.insertion_references)
    return fmt::format("mean over {}", fmt::join(s.references, ", "));
  return fmt::format("deletion on {}, insertion on {}", fmt::join(s.deletion_references, ", "),
                     fmt::join(s.insertion_references, ", "));
}

std::string number_text(double value) {
  return std::isnan(value) ? "" : fmt::format("{:.4f}", value);
}

std::string dropped_text(const MethodSummary& row) {
  std::vector<std::string> parts;
  if (row.constant > 0) parts.push_back(fmt::format("{} constant", row.constant));
  if (row.unusable > row.constant) parts.push_back(fmt::format("{} failed", row.unusable - row.constant));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string maps_text(double maps) {
  if (!std::isfinite(maps)) return "never";
  std::string digits = fmt::format("{:.0f}", std::ceil(maps));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

std::vector<std::string> legend_of(const Summary& s) {
  std::vector<std::string> out = {
      "¹ ² ³: the best three of a column, ceilings apart; intervals are 95 % BCa bootstrap over images"};
  const auto any = [&](const auto& holds) { return std::any_of(s.rows.begin(), s.rows.end(), holds); };
  const auto any_metric = [&](const auto& holds) {
    return any([&](const MethodSummary& row) {
      return std::any_of(row.metrics.begin(), row.metrics.end(),
                         [&](const auto& one) { return holds(one.second); });
    });
  };
  if (any_metric([](const MetricSummary& m) { return m.optimized; }))
    out.push_back(
        "†: the method's maps are searched or trained for this metric: "
        "not evidence from outside");
  if (any_metric([](const MetricSummary& m) { return !std::isnan(m.place); }))
    out.push_back("%: how far on the way from the best floor (0) to the best ceiling (100)");
  else if (s.methods.size() > 1)
    out.push_back(
        "no places between floor and ceiling: the table lacks a floor (random, center, sobel, "
        "blurred-random) or a ceiling (greedy, optimized)");
  if (any([](const MethodSummary& row) { return row.rank.mean > 0; }))
    out.push_back("rank: mean over the metrics that are no part of a difference, 1 is best, ceilings apart");
  if (any([](const MethodSummary& row) { return row.unusable > 0; }))
    out.push_back("dropped: images without a usable map; they are left out for all methods");
  return out;
}

nlohmann::json results_json(const Evaluation& e) {
  const Summary& s = e.summary;
  nlohmann::json rows = nlohmann::json::array(), failures = nlohmann::json::array();
  for (const auto& f : s.failures)
    failures.push_back(
        {{"image", f.image}, {"method", f.method}, {"class", f.explained}, {"reason", f.reason}});
  for (const auto& row : s.rows) {
    nlohmann::json metrics = nlohmann::json::object(), curves = nlohmann::json::object();
    for (const auto& metric : s.metrics) metrics[metric.name] = json_from_metric(row.metrics.at(metric.name));
    for (const auto& [reference, c] : row.curves) curves[reference] = {{"top", c.top}, {"bottom", c.bottom}};
    nlohmann::json one = {{"method", row.method},
                          {"class", row.explained},
                          {"metrics", metrics},
                          {"curves", curves},
                          {"group", title_of(row.group)},
                          {"learned", row.learned},
                          {"seconds_per_image", nullptr},
                          {"timed_runs", row.timing.runs},
                          {"target_forwards", row.passes.forwards},
                          {"target_backwards", row.passes.backwards},
                          {"refine", row.steps},
                          {"tie_rate", row.tie_rate},
                          {"unusable_maps", row.unusable},
                          {"constant_maps", row.constant}};
    if (row.timing.runs > 0) one["seconds_per_image"] = row.timing.seconds;
    if (row.rank.mean > 0)
      one["mean_rank"] = {{"mean", row.rank.mean}, {"low", row.rank.low}, {"high", row.rank.high}};
    rows.push_back(one);
  }
  nlohmann::json between = nlohmann::json::object(), bounds = nlohmann::json::object(),
                 paid_off = nlohmann::json::array();
  for (const auto& [explained, agreement] : s.between_metrics)
    between[explained] = {{"metrics", agreement.metrics}, {"tau", agreement.tau}};
  for (const auto& [explained, metrics] : s.bounds)
    for (const auto& [metric, bound] : metrics)
      bounds[explained][metric] = {{"floor", bound.floor}, {"ceiling", bound.ceiling}};
  for (const auto& one : s.break_even) {
    paid_off.push_back({{"method", one.method}, {"slower", one.slower}, {"maps", nullptr}});  // null = never
    if (std::isfinite(one.maps)) paid_off.back()["maps"] = one.maps;
  }
  return {{"target", e.settings["target"]["name"]},
          {"data", e.settings["data"]},
          {"images", s.images.size()},
          {"images_asked", s.asked},
          {"left_out", s.left_out},
          {"failures", failures},
          {"references", s.references},
          {"rows", rows},
          {"agreement_over_references", s.agreement},
          {"agreement_over_metrics", between},
          {"bounds", bounds},
          {"training_seconds", s.training_seconds},
          {"break_even", paid_off},
          {"reference_leaks", s.leaks},
          {"warnings", s.warnings},
          {"seconds", e.seconds},
          {"target_evaluations", e.target_evaluations},
          {"settings", e.settings}};
}

std::string results_csv(const Evaluation& e) {
  const Summary& s = e.summary;
  std::string out = "method,class,metric,mean,low,high";
  for (const auto& reference : s.references) out += ",reference_" + reference;
  out +=
      ",rival,difference,difference_low,difference_high,p,p_corrected,win_rate,detectable,place_percent,"
      "optimized,images,constant_maps,failed_maps,seconds_per_image,target_forwards,target_backwards,"
      "mean_rank,mean_rank_low,mean_rank_high\n";
  for (const auto& row : s.rows)
    for (const auto& metric : s.metrics) {
      const auto& m = row.metrics.at(metric.name);
      out += fmt::format("{},{},{},{:.6f},{:.6f},{:.6f}", csv_cell(row.method), row.explained, metric.name,
                         m.value.mean, m.value.low, m.value.high);
      for (const auto& reference : s.references)
        out +=
            m.per_reference.contains(reference) ? fmt::format(",{:.6f}", m.per_reference.at(reference)) : ",";
      const auto& d = m.difference;
      out += m.rival.empty()
                 ? std::string(",,,,,,,,")
                 : fmt::format(",{},{:.6f},{:.6f},{:.6f},{:.3g},{:.3g},{:.4f},{:.6f}", csv_cell(m.rival),
                               d.difference.mean, d.difference.low, d.difference.high, d.p_value,
                               m.corrected_p, d.win_rate, m.detectable);
      out += fmt::format(",{},{},{},{},{},{},{:g},{:g}", number_text(m.place), m.optimized ? 1 : 0, m.images,
                         row.constant, row.unusable - row.constant,
                         row.timing.runs > 0 ? fmt::format("{:.6f}", row.timing.seconds) : "",
                         row.passes.forwards, row.passes.backwards);
      out += row.rank.mean > 0
                 ? fmt::format(",{:.4f},{:.4f},{:.4f}\n", row.rank.mean, row.rank.low, row.rank.high)
                 : std::string(",,,\n");
    }
  return out;
}

std::string per_image_csv(const Evaluation& e) {
  const Summary& s = e.summary;
  std::string out = "image,method,class";
  for (const auto& metric : s.metrics) out += "," + metric.name;
  out += "\n";
  for (size_t i = 0; i < s.images.size(); ++i)
    for (const auto& row : s.rows) {
      out += fmt::format("{},{},{}", csv_cell(s.images[i]), csv_cell(row.method), row.explained);
      for (const auto& metric : s.metrics)
        if (const double value = row.metrics.at(metric.name).per_image[i]; std::isnan(value))
          out += ",";
        else
          out += fmt::format(",{:.7f}", value);
      out += "\n";
    }
  return out;
}

std::string curves_csv(const Evaluation& e) {
  const int steps = e.settings["protocol"]["steps"].get<int>();
  std::string out =
      "method,class,reference,removed,top_probability,bottom_probability,top_recognized,bottom_recognized\n";
  for (const auto& row : e.summary.rows)
    for (const auto& [reference, c] : row.curves)
      for (size_t i = 0; i < c.top.size(); ++i)
        out += fmt::format("{},{},{},{:.4f},{:.6f},{:.6f},{:.6f},{:.6f}\n", csv_cell(row.method),
                           row.explained, reference, static_cast<double>(i) / steps, c.top[i], c.bottom[i],
                           c.top_hits[i], c.bottom_hits[i]);
  return out;
}

namespace {

// Whether some method has it, so that the column is worth its place.
bool any_row(const Summary& s, const std::string& explained, const auto& holds) {
  return std::any_of(s.rows.begin(), s.rows.end(),
                     [&](const MethodSummary& row) { return row.explained == explained && holds(row); });
}

bool has_rank(const MethodSummary& row) {
  return row.rank.mean > 0;
}

bool has_dropped(const MethodSummary& row) {
  return row.unusable > 0;
}

std::string markdown_figure(const Summary& s, const MethodSummary& row, const MetricRecord& metric) {
  const auto& m = row.metrics.at(metric.name);
  if (m.images == 0) return "";
  constexpr const char* kPlaces[] = {"", "¹", "²", "³"};
  const int place = place_among(s, row, metric);
  const char* bold = place == 1 ? "**" : "";
  return fmt::format("{}{:.4f}{}{}{} [{:.4f}, {:.4f}]{}", bold, m.value.mean, bold,
                     place <= 3 ? kPlaces[place] : "", m.optimized ? "†" : "", m.value.low, m.value.high,
                     std::isnan(m.place) ? "" : fmt::format(" {:.0f} %", m.place));
}

std::string markdown_table(const Summary& s, const std::string& explained) {
  const bool ranks = any_row(s, explained, has_rank), dropped = any_row(s, explained, has_dropped);
  std::vector<std::string> titles = {"method"};
  for (const auto& metric : s.metrics) titles.push_back(metric.name + " " + up_or_down(metric));
  if (ranks) titles.push_back("rank");
  titles.insert(titles.end(), {"time per image", "target passes"});
  if (dropped) titles.push_back("dropped");
  std::string out = fmt::format("| {} |\n|", fmt::join(titles, " | "));
  for (size_t i = 0; i < titles.size(); ++i) out += " --- |";
  out += "\n";
  const auto groups = grouped_rows(s, explained);
  for (const auto& [group, rows] : groups) {
    if (groups.size() > 1) {
      out += fmt::format("| *{}* |", title_of(group));
      for (size_t i = 1; i < titles.size(); ++i) out += " |";
      out += "\n";
    }
    for (const auto* row : rows) {
      out += fmt::format("| {} |", markdown_cell(row->method));
      for (const auto& metric : s.metrics) out += " " + markdown_figure(s, *row, metric) + " |";
      if (ranks)
        out += has_rank(*row)
                   ? fmt::format(" {:.1f} [{:.1f}, {:.1f}] |", row->rank.mean, row->rank.low, row->rank.high)
                   : std::string(" |");
      out += fmt::format(" {} | {} |", seconds_text(row->timing), text_from_passes(row->passes));
      if (dropped) out += " " + dropped_text(*row) + " |";
      out += "\n";
    }
  }
  return out;
}

// The best method of each metric against the second.
std::string markdown_rivals(const Summary& s, const std::string& explained) {
  std::string out =
      "\n| metric | method | best rival | difference | p (Holm) | wins | detectable |\n| --- | --- | --- | "
      "--- | --- | --- | --- |\n";
  for (const auto& metric : s.metrics)
    for (const auto* row : ranked_rows(s, explained)) {
      const auto& m = row->metrics.at(metric.name);
      if (place_among(s, *row, metric) != 1 || m.rival.empty()) continue;
      out +=
          fmt::format("| {} {} | {} | {} | {:+.4f} [{:+.4f}, {:+.4f}] | {:.2g} | {:.0f} % | {:.4f} |\n",
                      metric.name, up_or_down(metric), markdown_cell(row->method), markdown_cell(m.rival),
                      m.difference.difference.mean, m.difference.difference.low, m.difference.difference.high,
                      m.corrected_p, 100 * m.difference.win_rate, m.detectable);
    }
  return out;
}

}  // namespace

std::string table_markdown(const Evaluation& e) {
  const Summary& s = e.summary;
  std::string out = fmt::format("`{}` on `{}`: {} of {} images, protocol `{}`, {}.\n",
                                e.settings["target"]["name"].get<std::string>(),
                                e.settings["data"].get<std::string>(), s.images.size(), s.asked,
                                e.settings["protocol"]["name"].get<std::string>(), references_text(s));
  for (const auto& explained : s.explained) {
    out += fmt::format("\n### Explaining the {}\n\n", class_title(explained)) + markdown_table(s, explained);
    if (s.methods.size() > 1) out += markdown_rivals(s, explained);
  }
  if (!s.break_even.empty()) {
    out += fmt::format(
        "\n### Maps until {:.0f} s of training have paid off\n\n| explainer | instead of | maps |\n"
        "| --- | --- | --- |\n",
        s.training_seconds);
    for (const auto& one : s.break_even)
      out += fmt::format("| {} | {} | {} |\n", markdown_cell(one.method), markdown_cell(one.slower),
                         maps_text(one.maps));
  }
  for (const auto& line : legend_of(s)) out += "\n- " + line;
  for (const auto& warning : s.warnings) out += "\n- " + warning;
  return out + "\n";
}

std::string table_latex(const Evaluation& e) {
  const Summary& s = e.summary;
  constexpr const char* kMarks[] = {"{}", "\\mathbf{{{}}}", "\\underline{{{}}}", "\\mathit{{{}}}"};
  std::string out =
      "% the best three of a column: bold, underlined, italic; a dagger: searched or trained for it\n";
  for (const auto& explained : s.explained) {
    out += "% " + class_title(explained) +
           fmt::format(", {} images, protocol {}\n", s.images.size(),
                       e.settings["protocol"]["name"].get<std::string>());
    out += "\\begin{tabular}{l" + std::string(s.metrics.size(), 'c') + "r}\n\\hline\nMethod";
    for (const auto& metric : s.metrics)
      out += fmt::format(" & {} ${}$", latex_text(metric.name),
                         metric.higher_is_better ? "\\uparrow" : "\\downarrow");
    out += " & Time \\\\\n";
    const auto groups = grouped_rows(s, explained);
    for (const auto& [group, rows] : groups) {
      out += "\\hline\n";
      if (groups.size() > 1)
        out += fmt::format("\\multicolumn{{{}}}{{l}}{{\\textit{{{}}}}} \\\\\n", s.metrics.size() + 2,
                           title_of(group));
      for (const auto* row : rows) {
        out += latex_text(row->method);
        for (const auto& metric : s.metrics) {
          const auto& m = row->metrics.at(metric.name);
          const int place = place_among(s, *row, metric);
          const std::string value =
              fmt::format(fmt::runtime(kMarks[place <= 3 ? place : 0]), fmt::format("{:.4f}", m.value.mean));
          out += m.images == 0 ? std::string(" & ")
                               : fmt::format(" & ${}{} \\pm {:.4f}$", value, m.optimized ? "^{\\dagger}" : "",
                                             (m.value.high - m.value.low) / 2);
        }
        out += " & " + seconds_text(row->timing) + " \\\\\n";
      }
    }
    out += "\\hline\n\\end{tabular}\n";
  }
  return out;
}

}  // namespace aha
