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
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

nlohmann::json json_from_metric(const MetricSummary& m) {
  nlohmann::json out = {{"mean", m.value.mean},
                        {"low", m.value.low},
                        {"high", m.value.high},
                        {"per_reference", m.per_reference}};
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

bool is_best(const Summary& s, const MethodSummary& row, const MetricRecord& metric) {
  const double sign = metric.higher_is_better ? 1 : -1, mine = sign * row.metrics.at(metric.name).value.mean;
  return std::all_of(s.rows.begin(), s.rows.end(), [&](const MethodSummary& other) {
    return other.explained != row.explained || sign * other.metrics.at(metric.name).value.mean <= mine;
  });
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
                          {"seconds_per_image", nullptr},
                          {"timed_runs", row.timing.runs},
                          {"target_forwards", row.passes.forwards},
                          {"target_backwards", row.passes.backwards},
                          {"refine", row.steps},
                          {"tie_rate", row.tie_rate},
                          {"unusable_maps", row.unusable},
                          {"constant_maps", row.constant}};
    if (row.timing.runs > 0) one["seconds_per_image"] = row.timing.seconds;
    rows.push_back(one);
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
          {"reference_leaks", s.leaks},
          {"warnings", s.warnings},
          {"seconds", e.seconds},
          {"target_evaluations", e.target_evaluations},
          {"settings", e.settings}};
}

std::string results_csv(const Evaluation& e) {
  const Summary& s = e.summary;
  std::string out = "method,class,metric,mean,low,high";
  for (const auto& reference : s.references) out += "," + reference;
  out +=
      ",rival,difference,difference_low,difference_high,p,p_corrected,win_rate,detectable,images,seconds_per_"
      "image,target_forwards,target_backwards\n";
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
                 : fmt::format(",{},{:.6f},{:.6f},{:.6f},{:.5f},{:.5f},{:.4f},{:.6f}", csv_cell(m.rival),
                               d.difference.mean, d.difference.low, d.difference.high, d.p_value,
                               m.corrected_p, d.win_rate, m.detectable);
      out += fmt::format(",{},{},{:g},{:g}\n", m.images,
                         row.timing.runs > 0 ? fmt::format("{:.6f}", row.timing.seconds) : "",
                         row.passes.forwards, row.passes.backwards);
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

std::string table_markdown(const Evaluation& e) {
  const Summary& s = e.summary;
  std::string out =
      fmt::format("`{}` on `{}`: {} of {} images, protocol `{}`, mean over {} ({}).\n",
                  e.settings["target"]["name"].get<std::string>(), e.settings["data"].get<std::string>(),
                  s.images.size(), s.asked, e.settings["protocol"]["name"].get<std::string>(),
                  fmt::join(s.references, ", "), "95 % bootstrap interval over images in brackets");
  for (const auto& explained : s.explained) {
    out += fmt::format("\n### Explaining the {}\n\n| method |", class_title(explained));
    for (const auto& metric : s.metrics) out += fmt::format(" {} {} |", metric.name, up_or_down(metric));
    out += " time per image | target passes |\n| --- |";
    for (size_t i = 0; i < s.metrics.size(); ++i) out += " --- |";
    out += " --- | --- |\n";
    for (const auto* row : ranked_rows(s, explained)) {
      out += fmt::format("| {} |", markdown_cell(row->method));
      for (const auto& metric : s.metrics) {
        const auto& v = row->metrics.at(metric.name).value;
        const char* mark = is_best(s, *row, metric) ? "**" : "";
        out += fmt::format(" {}{:.4f}{} [{:.4f}, {:.4f}] |", mark, v.mean, mark, v.low, v.high);
      }
      out += fmt::format(" {} | {} |\n", seconds_text(row->timing), text_from_passes(row->passes));
    }
    if (s.methods.size() < 2) continue;
    out +=
        "\n| metric | method | best rival | difference | p (Holm) | wins | detectable |\n| --- | --- | --- | "
        "--- | --- | --- | --- |\n";
    for (const auto& metric : s.metrics)
      for (const auto* row : ranked_rows(s, explained)) {
        const auto& m = row->metrics.at(metric.name);
        if (!is_best(s, *row, metric)) continue;
        out += fmt::format("| {} {} | {} | {} | {:+.4f} [{:+.4f}, {:+.4f}] | {:.4f} | {:.0f} % | {:.4f} |\n",
                           metric.name, up_or_down(metric), markdown_cell(row->method),
                           markdown_cell(m.rival), m.difference.difference.mean, m.difference.difference.low,
                           m.difference.difference.high, m.corrected_p, 100 * m.difference.win_rate,
                           m.detectable);
      }
  }
  for (const auto& warning : s.warnings) out += "\n- " + warning;
  return out + "\n";
}

std::string table_latex(const Evaluation& e) {
  const Summary& s = e.summary;
  std::string out;
  for (const auto& explained : s.explained) {
    out += "% " + class_title(explained) +
           fmt::format(", {} images, protocol {}\n", s.images.size(),
                       e.settings["protocol"]["name"].get<std::string>());
    out += "\\begin{tabular}{l" + std::string(s.metrics.size(), 'c') + "r}\n\\hline\nMethod";
    for (const auto& metric : s.metrics)
      out += fmt::format(" & {} ${}$", latex_text(metric.name),
                         metric.higher_is_better ? "\\uparrow" : "\\downarrow");
    out += " & Time \\\\\n\\hline\n";
    for (const auto* row : ranked_rows(s, explained)) {
      out += latex_text(row->method);
      for (const auto& metric : s.metrics) {
        const auto& v = row->metrics.at(metric.name).value;
        const double half = (v.high - v.low) / 2;
        out += is_best(s, *row, metric) ? fmt::format(" & $\\mathbf{{{:.4f}}} \\pm {:.4f}$", v.mean, half)
                                        : fmt::format(" & ${:.4f} \\pm {:.4f}$", v.mean, half);
      }
      out += " & " + seconds_text(row->timing) + " \\\\\n";
    }
    out += "\\hline\n\\end{tabular}\n";
  }
  return out;
}

}  // namespace aha
