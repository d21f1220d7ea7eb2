#include "aha/evaluate/report.h"

#include <filesystem>

#include "aha/base/base64.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"
#include "aha/evaluate/curves_svg.h"
#include "aha/evaluate/table.h"
#include "aha/image/heatmap.h"
#include "aha/image/png.h"
#include "aha/image/read.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;color:#222;background:#fff;max-width:1200px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem} h2{font-size:1.2rem;margin-top:2rem}
table{border-collapse:collapse;margin:1rem 0} th,td{padding:.3rem .7rem;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left} td small{color:#777} .best{font-weight:bold}
.wide{overflow-x:auto} .grid td{text-align:center;padding:2px;border:0} .grid th{border:0;font-weight:normal;font-size:.8rem}
.grid img{width:112px;height:112px;image-rendering:auto;display:block} .swatch{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
.note{background:#fff8e1;border-left:4px solid #e69f00;padding:.4rem .8rem;margin:.3rem 0} pre{background:#f6f6f6;padding:1rem;overflow-x:auto;font-size:.8rem}
)";

std::string png_uri(const Image& image) {
  const std::string bytes = png_bytes(image);
  return "data:image/png;base64," + base64(std::as_bytes(std::span(bytes)));
}

std::string wide_table(const std::string& rows, const char* kind = "") {
  return fmt::format("<div class=\"wide\"><table{}>{}</table></div>\n", kind, rows);
}

std::string metric_table(const Evaluation& e, const std::string& explained) {
  const Summary& s = e.summary;
  std::string out = "<tr><th>method</th>";
  for (const auto& metric : s.metrics)
    out += fmt::format("<th title=\"{}\">{} {}</th>", escaped(metric.summary), escaped(metric.name),
                       up_or_down(metric));
  out += "<th>time</th><th>target passes</th><th>ties</th></tr>\n";
  const auto rows = ranked_rows(s, explained);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& row = *rows[i];
    out += fmt::format("<tr><td><span class=\"swatch\" style=\"background:{}\"></span>{}</td>",
                       method_color(i), escaped(row.method));
    for (const auto& metric : s.metrics) {
      const auto& m = row.metrics.at(metric.name);
      std::string per_reference;
      for (const auto& reference : s.references)
        if (const auto at = m.per_reference.find(reference); at != m.per_reference.end())
          per_reference += fmt::format("{} {:.4f}  ", reference, at->second);
      out += fmt::format("<td{} title=\"{}\">{:.4f} <small>[{:.4f}, {:.4f}]</small></td>",
                         is_best(s, row, metric) ? " class=\"best\"" : "", per_reference, m.value.mean,
                         m.value.low, m.value.high);
    }
    out += fmt::format("<td>{}</td><td>{}</td><td>{:.1f} %</td></tr>\n", seconds_text(row.timing),
                       text_from_passes(row.passes), 100 * row.tie_rate);
  }
  return wide_table(out);
}

std::string reference_table(const Evaluation& e, const std::string& explained) {
  const Summary& s = e.summary;
  std::string out = "<tr><th>method</th>";
  std::vector<const MetricRecord*> metrics;  // those that references play a part in
  for (const auto& metric : s.metrics)
    if (!s.row(s.methods[0], explained).metrics.at(metric.name).per_reference.empty())
      metrics.push_back(&metric);
  for (const auto* metric : metrics)
    for (const auto& reference : s.references)
      out += fmt::format("<th>{} {}<br><small>{}</small></th>", metric->name, up_or_down(*metric), reference);
  out += "</tr>\n";
  for (const auto* row : ranked_rows(s, explained)) {
    out += fmt::format("<tr><td>{}</td>", escaped(row->method));
    for (const auto* metric : metrics)
      for (const auto& reference : s.references)
        out += fmt::format("<td>{:.4f}</td>", row->metrics.at(metric->name).per_reference.at(reference));
    out += "</tr>\n";
  }
  return wide_table(out);
}

std::string rival_table(const Evaluation& e, const std::string& explained) {
  const Summary& s = e.summary;
  std::string out =
      "<tr><th>method</th><th>metric</th><th>best rival</th>"
      "<th>difference</th><th>p (Holm)</th><th>wins</th><th>detectable</th></tr>\n";
  for (const auto* row : ranked_rows(s, explained))
    for (const auto& metric : s.metrics) {
      const auto& m = row->metrics.at(metric.name);
      if (metric.parts.empty() && s.metrics.size() > 2) continue;
      const auto& d = m.difference;
      out += fmt::format(
          "<tr><td>{}</td><td>{} {}</td><td>{}</td><td>{:+.4f} <small>[{:+.4f}, "
          "{:+.4f}]</small></td><td>{:.4f}</td><td>{:.0f} %</td><td>{:.4f}</td></tr>\n",
          escaped(row->method), metric.name, up_or_down(metric), escaped(m.rival), d.difference.mean,
          d.difference.low, d.difference.high, m.corrected_p, 100 * d.win_rate, m.detectable);
    }
  return wide_table(out);
}

// One line for each image: itself, then every method's map over it, best method first.
std::string image_grid(const Evaluation& e) {
  const auto rows = ranked_rows(e.summary, e.summary.explained[0]);
  std::string out = "<tr><th></th>";
  for (const auto* row : rows) out += fmt::format("<th>{}</th>", escaped(row->method));
  out += "</tr>\n";
  for (const ShownImage& shown : e.shown) {
    const Image image = read_image(shown.file);
    out += fmt::format("<tr><td><img alt=\"{0}\" title=\"{0}\" src=\"{1}\"></td>", escaped(shown.id),
                       png_uri(image));
    for (const auto* row : rows) {
      out += "<td>";
      if (const auto map_file = shown.maps.find(row->method); map_file != shown.maps.end()) {
        const NpyArray map = read_npy(map_file->second);
        const Image heat =
            overlay(image, map.values, static_cast<int>(map.shape.at(1)), static_cast<int>(map.shape.at(0)));
        out += fmt::format("<img alt=\"{}\" src=\"{}\">", escaped(row->method), png_uri(heat));
      }
      out += "</td>";
    }
    out += "</tr>\n";
  }
  return wide_table(out, " class=\"grid\"");
}

// What the reader should know of the numbers, before them; many are folded, so that the table is seen first.
std::string remarks(const std::vector<std::string>& warnings) {
  constexpr size_t kShown = 3;
  std::string notes;
  for (const auto& warning : warnings) notes += "<p class=\"note\">" + escaped(warning) + "</p>\n";
  if (warnings.size() <= kShown) return notes;
  return fmt::format("<details><summary>{} remarks on these numbers</summary>\n{}</details>\n",
                     warnings.size(), notes);
}

}  // namespace

std::string report_html(const Evaluation& e) {
  const Summary& s = e.summary;
  const std::string target = e.settings["target"]["name"], data = e.settings["data"],
                    protocol = e.settings["protocol"]["name"];
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">"
      "<title>{0} on {1}</title><style>{2}</style></head><body>\n<h1>Explanations of {0} on {1}</h1>\n"
      "<p>{3} of {4} images, protocol <b>{5}</b>, mean over the references {6}; 95 % bootstrap intervals "
      "over images in brackets. "
      "Time: one image a batch, after a warm-up. F, B: forward and backward passes of the target a "
      "map.</p>\n",
      escaped(target), escaped(data), kStyle, s.images.size(), s.asked, escaped(protocol),
      fmt::join(s.references, ", "));
  if (!s.failures.empty())
    out += fmt::format(
        "<p class=\"note\"><b>{} failed</b> and are left out of every comparison; the remarks name them with "
        "the reason.</p>\n",
        s.failures.size() == 1 ? "One image or map" : fmt::format("{} images or maps", s.failures.size()));
  out += remarks(s.warnings);
  for (const auto& explained : s.explained) {
    out += fmt::format("<h2>Explaining the {} class</h2>\n", explained == "predicted" ? "predicted" : "true");
    out += metric_table(e, explained);
    out += "<div class=\"wide\">" + curves_svg(e, explained) + "</div>\n";
    if (s.methods.size() > 1)
      out += "<details><summary>Each method against its best rival, paired by image</summary>" +
             rival_table(e, explained) + "</details>\n";
    out +=
        "<details><summary>Each reference apart</summary>" + reference_table(e, explained) + "</details>\n";
  }
  if (!e.shown.empty()) out += "<h2>Images</h2>\n" + image_grid(e);
  out += "<h2>Settings</h2>\n<pre>" + escaped(e.settings.dump(2)) + "</pre>\n</body></html>\n";
  return out;
}

std::vector<std::string> write_results(const Evaluation& e, const std::string& out) {
  const auto json = results_json(e).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::vector<std::pair<std::string, std::string>> files = {
      {"results.json", json},
      {"results.csv", results_csv(e)},
      {"per_image.csv", per_image_csv(e)},
      {"table.md", table_markdown(e)},
      {"table.tex", table_latex(e)},
      {"curves.csv", curves_csv(e)},
      {"curves.svg", curves_svg(e, e.summary.explained[0])},
      {"report.html", report_html(e)},
  };
  std::vector<std::string> written;
  for (const auto& [name, content] : files) {
    written.push_back((fs::path(out) / name).string());
    write_file_atomically(written.back(), content);
  }
  return written;
}

}  // namespace aha
