#include "aha/evaluate/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "aha/base/base64.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/npy.h"
#include "aha/evaluate/curves_svg.h"
#include "aha/evaluate/table.h"
#include "aha/image/colors.h"
#include "aha/image/heatmap.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/image/webp.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#222;--soft:#666;--paper:#fff;--line:#ddd;--note:#fff8e1;--box:#f4f4f4;--best:#d3e2f3}
@media (prefers-color-scheme:dark){:root{--ink:#ddd;--soft:#999;--paper:#1b1b1b;--line:#444;--note:#3a3420;--box:#262626;--best:#274160}}
*{box-sizing:border-box} body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;padding:1rem;max-width:1600px}
h1{font-size:1.4rem;overflow-wrap:anywhere} h2{font-size:1.15rem;margin-top:2rem} p,li,summary{max-width:60rem} summary{cursor:pointer;margin:.4rem 0}
.wide{overflow-x:auto} table{border-collapse:collapse;margin:.6rem 0;font-size:.82rem} th,td{padding:.25rem .35rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th{white-space:nowrap} .sortable th{cursor:pointer} th[data-dir="1"]::after{content:" ▾"} th[data-dir="0"]::after{content:" ▴"}
td small,.soft{color:var(--soft)} td small{display:block;white-space:nowrap;font-size:.7rem;font-weight:normal} td.line{white-space:nowrap}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--paper);overflow-wrap:anywhere;min-width:6rem;max-width:13rem;white-space:normal}
.group td{color:var(--soft);font-style:italic;border-bottom:2px solid var(--line);padding-top:.7rem}
.place1{background:var(--best);font-weight:bold} .place2{background:color-mix(in srgb,var(--best) 60%,transparent)} .place3{background:color-mix(in srgb,var(--best) 30%,transparent)}
.columns label{display:inline-block;margin-right:.8rem;font-size:.85rem;white-space:nowrap} .swatch{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
.note{background:var(--note);border-left:4px solid #e69f00;padding:.3rem .7rem;margin:.3rem 0} pre{background:var(--box);padding:1rem;overflow-x:auto;font-size:.8rem}
.curves{max-width:none} #tip{position:fixed;display:none;pointer-events:none;background:var(--ink);color:var(--paper);padding:.15rem .5rem;border-radius:3px;font-size:.8rem;z-index:9}
.image{border-top:1px solid var(--line);padding:.8rem 0} .image h3{font-size:1rem;margin:0 0 .5rem;overflow-wrap:anywhere} h3 span{font-weight:normal;color:var(--soft);margin-left:.8em}
.maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(8.6rem,1fr));gap:.8rem .7rem} figure{margin:0;max-width:16rem} figure img{width:100%;display:block}
figcaption{font-size:.85rem;line-height:1.4;margin-top:.25rem;overflow-wrap:anywhere} figcaption table{margin:0;font-size:.8rem;width:100%}
figcaption table td{padding:0;border:0;position:static;min-width:0;max-width:none} .over{background-size:100% 100%} .small{image-rendering:pixelated}
.scale{height:.8rem;max-width:20rem;margin:.2rem 0;background-color:#808080} svg.curves{display:block;height:auto;min-width:62rem}
@media (max-width:600px){.maps{grid-template-columns:repeat(2,1fr)} body{padding:.6rem}}
)";

constexpr const char* kScript = R"(
document.querySelectorAll('table.sortable').forEach(t=>{
 const heads=[...t.tHead.rows[0].cells];
 const value=(r,i)=>{const k=r.cells[i].dataset.v;return k===undefined?r.cells[i].textContent.trim().toLowerCase():k===''?null:+k};
 heads.forEach((h,i)=>h.onclick=()=>{
  const down=h.dataset.dir?h.dataset.dir!=='1':h.dataset.first!=='up';
  heads.forEach(x=>delete x.dataset.dir);h.dataset.dir=down?'1':'0';
  [...t.tBodies].forEach(b=>{
   const rows=[...b.rows].filter(r=>!r.classList.contains('group'));
   rows.sort((p,q)=>{const a=value(p,i),c=value(q,i);if(a===null||c===null)return (a===null)-(c===null);return (a<c?-1:a>c?1:0)*(down?-1:1)});
   rows.forEach(r=>b.appendChild(r))})});
 const box=t.closest('.tablebox').querySelector('.columns');
 heads.forEach((h,i)=>{if(!i)return;
  const l=document.createElement('label'),c=document.createElement('input');c.type='checkbox';c.checked=true;
  c.onchange=()=>[...t.rows].forEach(r=>{if(!r.classList.contains('group'))r.cells[i].style.display=c.checked?'':'none'});
  l.append(c,' '+h.dataset.title);box.append(l)})});
const tip=document.getElementById('tip');
document.querySelectorAll('svg.curves').forEach(s=>{
 const curves=[...s.querySelectorAll('[data-name]')].map(e=>({e,name:e.dataset.name,
  points:e.getAttribute('points').trim().split(' ').map(p=>p.split(',').map(Number)),values:e.dataset.values.trim().split(' ')}));
 const clear=()=>{tip.style.display='none';curves.forEach(c=>c.e.style.opacity='')};
 s.onpointerleave=clear;
 s.onpointermove=m=>{
  const at=new DOMPoint(m.clientX,m.clientY).matrixTransform(s.getScreenCTM().inverse());
  let best=null,near=400;
  curves.forEach(c=>c.points.forEach((p,i)=>{const d=(p[0]-at.x)**2+(p[1]-at.y)**2;if(d<near){near=d;best=[c,i]}}));
  if(!best)return clear();
  const [c,i]=best;
  curves.forEach(o=>o.e.style.opacity=o.name===c.name?1:.15);
  tip.textContent=c.name+', '+Math.round(100*i/s.dataset.steps)+' % removed: '+c.values[i];
  tip.style.display='block';tip.style.left=Math.min(m.clientX+12,innerWidth-tip.offsetWidth-4)+'px';tip.style.top=m.clientY+14+'px'}});
document.querySelectorAll('.image').forEach(s=>{const photo=s.querySelector('img').src;
 s.querySelectorAll('.over').forEach(o=>o.style.backgroundImage='url('+photo+')')});
)";

constexpr int kMapSide = 128;  // of maps in the page, in pixels
constexpr int kLevels = 32;    // of their colors

std::string png_uri(const std::string& bytes) {
  return "data:image/png;base64," + base64(std::as_bytes(std::span(bytes)));
}

// A photo as WebP; as PNG where its pixels are to be seen one by one.
std::string photo_uri(const Image& photo, bool small) {
  if (small) return png_uri(png_bytes(photo));
  const std::string bytes = webp_bytes(photo);
  return "data:image/webp;base64," + base64(std::as_bytes(std::span(bytes)));
}

double level_at(int index) {
  return static_cast<double>(index) / (kLevels - 1);
}

// Over the photo: transparent where the map is low.
std::vector<uint8_t> level_opacities() {
  HeatOptions heat;
  heat.opacity = 0.8;  // the page does not gray the photo below
  std::vector<uint8_t> out;
  for (int level = 0; level < kLevels; ++level)
    out.push_back(static_cast<uint8_t>(std::lround(255 * heat_opacity(level_at(level), heat))));
  return out;
}

std::vector<Color> level_colors() {
  std::vector<Color> out;
  for (int level = 0; level < kLevels; ++level)
    out.push_back(color_table(ColorMap::kEmber)[level * 255 / (kLevels - 1)]);
  return out;
}

// Colors by rank: whatever the unit of its values, the same color is the same share of the pixels in every
// map. Equal values share the middle of their ranks.
std::string rank_png(const NpyArray& map) {
  const auto H = static_cast<int>(map.shape.at(0)), W = static_cast<int>(map.shape.at(1));
  const int each = (std::max(H, W) + kMapSide - 1) / kMapSide, h = H / each, w = W / each;
  std::vector<float> values(static_cast<size_t>(h) * w);
  for (int y = 0; y < h * each; ++y)
    for (int x = 0; x < w * each; ++x)
      values[y / each * w + x / each] += map.values[static_cast<size_t>(y) * W + x];
  std::vector<float> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  std::vector<uint8_t> levels(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), values[i]);
    const double rank = 0.5 * static_cast<double>((first - sorted.begin()) + (last - sorted.begin() - 1));
    levels[i] = static_cast<uint8_t>(rank * kLevels / static_cast<double>(values.size()));
  }
  return palette_png_bytes(levels, w, h, level_colors(), level_opacities());
}

std::string color_scale() {
  std::string stops;
  const auto colors = level_colors();
  const auto opacities = level_opacities();
  for (size_t i = 0; i < colors.size(); ++i)
    stops +=
        fmt::format(",rgba({},{},{},{:.2f})", colors[i][0], colors[i][1], colors[i][2], opacities[i] / 255.0);
  return fmt::format(
      "<div class=\"scale\" style=\"background-image:linear-gradient(90deg{})\"></div>"
      "<p class=\"soft\">Least to most important pixels, by rank: the same color is the same share of the "
      "pixels in every map of an image.</p>\n",
      stops);
}

std::string wide_table(const std::string& rows) {
  return fmt::format("<div class=\"wide\"><table>{}</table></div>\n", rows);
}

std::string sortable_cell(double value, const std::string& text) {
  return fmt::format("<td class=\"line\" data-v=\"{}\">{}</td>",
                     std::isnan(value) ? "" : fmt::format("{:g}", value), text);
}

std::string metric_cell(const Summary& s, const MethodSummary& row, const MetricRecord& metric) {
  const auto& m = row.metrics.at(metric.name);
  if (m.images == 0) return "<td data-v=\"\"></td>";
  std::string per_reference;
  for (const auto& [reference, value] : m.per_reference)
    per_reference += fmt::format("{} {:.4f}  ", reference, value);
  const int place = place_among(s, row, metric);
  const int digits = std::abs(m.value.mean) < 10 ? 4 : 2;
  return fmt::format(
      "<td data-v=\"{0:.8g}\"{1} title=\"{2}\">{0:.{3}f}{4}<small>{5:.{3}f}–{6:.{3}f}</small>{7}</td>",
      m.value.mean, place >= 1 && place <= 3 ? fmt::format(" class=\"place{}\"", place) : "", per_reference,
      digits, m.optimized ? "†" : "", m.value.low, m.value.high,
      std::isnan(m.place) ? "" : fmt::format("<small>{:.0f} %</small>", m.place));
}

std::string metric_table(const Evaluation& e, const std::string& explained) {
  const Summary& s = e.summary;
  const auto head = [](const std::string& title, const char* first, const std::string& help) {
    return fmt::format("<th data-title=\"{0}\" data-first=\"{1}\" title=\"{2}\">{0}</th>", escaped(title),
                       first, escaped(help));
  };
  std::string out = "<thead><tr>" + head("method", "up", "");
  for (const auto& metric : s.metrics)
    out +=
        head(metric.name + " " + up_or_down(metric), metric.higher_is_better ? "down" : "up", metric.summary);
  out += head("rank", "up", "mean rank over the metrics") + head("time", "up", "a map, one image a batch") +
         head("target passes", "up", "forward and backward passes of the target a map") +
         head("ties", "up", "pixels that share their score with another");
  const bool dropped =
      std::any_of(s.rows.begin(), s.rows.end(), [](const MethodSummary& row) { return row.unusable > 0; });
  if (dropped) out += head("dropped", "down", "images without a usable map");
  out += "</tr></thead>\n";
  const auto order = ranked_rows(s, explained);
  const auto groups = grouped_rows(s, explained);
  for (const auto& [group, rows] : groups) {
    out += "<tbody>";
    if (groups.size() > 1)
      out += fmt::format("<tr class=\"group\"><td colspan=\"{}\">{}</td></tr>\n", s.metrics.size() + 6,
                         title_of(group));
    for (const auto* row : rows) {
      const size_t color = static_cast<size_t>(std::find(order.begin(), order.end(), row) - order.begin());
      out += fmt::format("<tr><td><span class=\"swatch\" style=\"background:{}\"></span>{}</td>",
                         method_color(color), escaped(row->method));
      for (const auto& metric : s.metrics) out += metric_cell(s, *row, metric);
      out += row->rank.mean > 0
                 ? sortable_cell(row->rank.mean, fmt::format("{:.1f}<small>{:.1f}–{:.1f}</small>",
                                                             row->rank.mean, row->rank.low, row->rank.high))
                 : sortable_cell(std::nan(""), "");
      out +=
          sortable_cell(row->timing.runs > 0 ? row->timing.seconds : std::nan(""), seconds_text(row->timing));
      out += sortable_cell(row->passes.forwards + row->passes.backwards, text_from_passes(row->passes));
      out += sortable_cell(row->tie_rate, fmt::format("{:.1f} %", 100 * row->tie_rate));
      if (dropped) out += sortable_cell(static_cast<double>(row->unusable), dropped_text(*row));
      out += "</tr>\n";
    }
    out += "</tbody>\n";
  }
  std::string legend;
  for (const auto& line : legend_of(s)) legend += escaped(line) + ". ";
  if (const size_t end = legend.find(':'); end != std::string::npos)  // shades stand for the raised digits
    legend = "Shaded, dark to light" + legend.substr(end);
  return fmt::format(
      "<div class=\"tablebox\"><details><summary>Columns</summary><div class=\"columns\"></div></details>\n"
      "<div class=\"wide\"><table class=\"sortable\">{}</table></div><p class=\"soft\">{} A click on a "
      "column "
      "sorts by it.</p></div>\n",
      out, legend);
}

std::string reference_table(const Evaluation& e, const std::string& explained) {
  const Summary& s = e.summary;
  std::vector<std::pair<const MetricRecord*, std::string>> columns;
  for (const auto& metric : s.metrics)
    for (const auto& [reference, value] :
         s.row(s.methods[0], explained).metrics.at(metric.name).per_reference)
      columns.emplace_back(&metric, reference);
  if (columns.empty()) return "";
  std::string out = "<tr><th>method</th>";
  for (const auto& [metric, reference] : columns)
    out += fmt::format("<th>{} {}<br><small>{}</small></th>", metric->name, up_or_down(*metric), reference);
  out += "</tr>\n";
  for (const auto* row : ranked_rows(s, explained)) {
    out += fmt::format("<tr><td>{}</td>", escaped(row->method));
    for (const auto& [metric, reference] : columns)
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
      if ((metric.parts.empty() && s.metrics.size() > 2 && metric.need == MetricNeed::kCurves) ||
          m.rival.empty())
        continue;
      const auto& d = m.difference;
      out += fmt::format(
          "<tr><td>{}</td><td>{} {}</td><td>{}</td><td>{:+.4f} <small>{:+.4f} to {:+.4f}</small></td>"
          "<td>{:.2g}</td><td>{:.0f} %</td><td>{:.4f}</td></tr>\n",
          escaped(row->method), metric.name, up_or_down(metric), escaped(m.rival), d.difference.mean,
          d.difference.low, d.difference.high, m.corrected_p, 100 * d.win_rate, m.detectable);
    }
  return wide_table(out) +
         "<p class=\"soft\">Differences are paired by image. p: sign flips, corrected by Holm for all "
         "methods, "
         "metrics and explained classes of this page. Detectable: the smallest difference that this number "
         "of "
         "images finds with a power of 80 %.</p>\n";
}

std::string agreement_table(const Summary& s, const std::string& explained) {
  const auto at = s.between_metrics.find(explained);
  if (at == s.between_metrics.end() || at->second.metrics.size() < 2) return "";
  std::string out = "<tr><th>Kendall tau</th>";
  for (const auto& name : at->second.metrics) out += fmt::format("<th>{}</th>", escaped(name));
  out += "</tr>\n";
  for (size_t a = 0; a < at->second.metrics.size(); ++a) {
    out += fmt::format("<tr><td>{}</td>", escaped(at->second.metrics[a]));
    for (const double tau : at->second.tau[a]) out += fmt::format("<td>{:.2f}</td>", tau);
    out += "</tr>\n";
  }
  return "<details><summary>How far the metrics agree on the order of the methods</summary>" +
         wide_table(out) + "</details>\n";
}

std::string break_even_table(const Summary& s) {
  if (s.break_even.empty()) return "";
  std::string out = "<tr><th>explainer</th><th>instead of</th><th>maps</th></tr>\n";
  for (const auto& one : s.break_even)
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(one.method),
                       escaped(one.slower), maps_text(one.maps));
  return fmt::format("<h2>Maps until {:.0f} s of training have paid off</h2>\n", s.training_seconds) +
         wide_table(out);
}

// What the metrics say of one image; its place among the common ones, or nothing where it was left out.
std::string scores_of(const Summary& s, const MethodSummary& row, const std::string& image) {
  constexpr size_t kShown = 3;
  const auto at = std::find(s.images.begin(), s.images.end(), image);
  if (at == s.images.end()) return "<span class=\"soft\">left out</span>";
  std::vector<std::string> scores;
  for (const auto& metric : s.metrics) {
    const bool is_part = std::any_of(s.metrics.begin(), s.metrics.end(), [&](const MetricRecord& other) {
      return std::find(other.parts.begin(), other.parts.end(), metric.name) != other.parts.end();
    });
    const double value = row.metrics.at(metric.name).per_image[at - s.images.begin()];
    if (!is_part && !metric.of_means && !std::isnan(value))
      scores.push_back(
          fmt::format("<tr><td>{} {}</td><td>{:.3f}</td></tr>", metric.name, up_or_down(metric), value));
  }
  if (scores.size() > kShown) scores.resize(kShown);
  return fmt::format("<table>{}</table>", fmt::join(scores, ""));
}

// One block for each image: itself, then every method's map over it, best method first.
std::string image_blocks(const Evaluation& e) {
  const Summary& s = e.summary;
  const auto rows = ranked_rows(s, s.explained[0]);
  std::string out = color_scale();
  for (const ShownImage& shown : e.shown) {
    const Image photo = read_image(shown.file);
    const bool small = photo.width < 100;
    out += fmt::format(
        "<section class=\"image\"><h3 title=\"{}\">{}<span>{}{}</span></h3><div class=\"maps\">\n",
        escaped(shown.id), escaped(without_folders(shown.id)), escaped(shown.class_name),
        std::isnan(shown.probability) ? "" : fmt::format(", probability {:.3f}", shown.probability));
    out += fmt::format("<figure><img alt=\"{}\"{} src=\"{}\"><figcaption>image</figcaption></figure>\n",
                       escaped(shown.id), small ? " class=\"small\"" : "", photo_uri(photo, small));
    for (const auto* row : rows) {
      const auto map_file = shown.maps.find(row->method);
      if (map_file == shown.maps.end()) continue;
      out += fmt::format(
          "<figure><div class=\"over{}\"><img alt=\"{}\" src=\"{}\"></div><figcaption><b>{}</b>{}"
          "</figcaption></figure>\n",
          small ? " small" : "", escaped(row->method), png_uri(rank_png(read_npy(map_file->second))),
          escaped(row->method), scores_of(s, *row, shown.id));
    }
    out += "</div></section>\n";
  }
  return out;
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
      "content=\"width=device-width,initial-scale=1\">"
      "<title>{0} on {1}</title><style>{2}</style></head><body>\n<h1>Explanations of {0} on {1}</h1>\n"
      "<p>{3} of {4} images, protocol <b>{5}</b>, {6}; 95 % intervals over images. "
      "Time: one image a batch, after a warm-up. F, B: forward and backward passes of the target a "
      "map.</p>\n",
      escaped(without_folders(target)), escaped(without_folders(data)), kStyle, s.images.size(), s.asked,
      escaped(protocol), references_text(s));
  if (!s.failures.empty())
    out += fmt::format(
        "<p class=\"note\"><b>{} failed</b> and are left out of every comparison; the remarks name them with "
        "the reason.</p>\n",
        s.failures.size() == 1 ? "One image or map" : fmt::format("{} images or maps", s.failures.size()));
  out += remarks(s.warnings);
  for (const auto& explained : s.explained) {
    out += fmt::format("<h2>Explaining the {} class</h2>\n", explained == "predicted" ? "predicted" : "true");
    out += metric_table(e, explained);
    if (!s.row(s.methods[0], explained).curves.empty())
      out += "<div class=\"wide\">" + curves_svg(e, explained) + "</div>\n";
    if (s.methods.size() > 1)
      out += "<details><summary>Each method against its best rival, paired by image</summary>" +
             rival_table(e, explained) + "</details>\n";
    if (const auto table = reference_table(e, explained); !table.empty())
      out += "<details><summary>Each reference apart</summary>" + table + "</details>\n";
    out += agreement_table(s, explained);
  }
  out += break_even_table(s);
  if (!e.shown.empty()) out += "<h2>Images</h2>\n" + image_blocks(e);
  out += "<h2>Settings</h2>\n<details><summary>Every fact the figures depend on</summary><pre>" +
         escaped(e.settings.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) +
         "</pre></details>\n<div id=\"tip\"></div><script>" + kScript + "</script></body></html>\n";
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
      {"curves.png", png_bytes(curves_image(e, e.summary.explained[0]))},
      {"report.html", report_html(e)},
  };
  std::vector<std::string> written, replaced;
  for (const auto& [name, content] : files) {
    written.push_back((fs::path(out) / name).string());
    if (fs::exists(written.back())) replaced.push_back(name);
    write_file_atomically(written.back(), content);
  }
  if (!replaced.empty()) spdlog::info("{}: overwritten: {}", out, fmt::join(replaced, ", "));
  return written;
}

}  // namespace aha
