#include "aha/experiments/figures.h"

#include <algorithm>
#include <cmath>

#include "aha/evaluate/curves_svg.h"
#include "aha/experiments/section.h"
#include "aha/image/draw.h"
#include "aha/image/heatmap.h"
#include "aha/image/resize.h"
#include "aha/image/text.h"
#include "aha/perturb/region_grid.h"
#include "aha/ranking/soft_sort.h"

namespace aha {
namespace {

constexpr double kChartLeft = 64, kChartTop = 44, kChartWidth = 420, kChartHeight = 240, kLegend = 250;
constexpr int kTile = 112, kTileGap = 8, kTileLeft = 110, kTileTop = 28;

struct ChartLine {
  std::string name;
  bool paper = false;
  std::vector<std::pair<size_t, Interval>> points = {};  // by the number of the row
};

std::vector<ChartLine> chart_lines(const ChartStep& chart, const Recipe& recipe, const Outcome& outcome) {
  std::vector<ChartLine> lines, papers;
  for (const auto& [block, explained] : outcome.blocks()) {
    ChartLine line{explained == "predicted" ? block : block + ", true class"}, paper{"paper", true};
    for (size_t i = 0; i < chart.rows.size(); ++i) {
      const OutcomeRow* row = outcome.find(block, explained, chart.rows[i]);
      if (!row || !row->found.contains(chart.metric)) continue;
      line.points.emplace_back(i, row->found.at(chart.metric).value);
      if (const double v = paper_figure(recipe, *row, chart.metric); !std::isnan(v))
        paper.points.emplace_back(i, Interval{v, v, v}),
            paper.name = fmt::format("paper, {}{}", row->paper, explained == "truth" ? ", true class" : "");
    }
    if (!line.points.empty()) lines.push_back(std::move(line));
    const bool known = std::any_of(papers.begin(), papers.end(),
                                   [&](const ChartLine& one) { return one.name == paper.name; });
    if (!paper.points.empty() && !known) papers.push_back(std::move(paper));
  }
  lines.insert(lines.end(), papers.begin(), papers.end());
  return lines;
}

// (H, W) in [0, 1] as gray pixels.
Image gray_image(const Tensor& mask) {
  const Tensor bytes = (mask.detach().clamp(0, 1) * 255).round().to(torch::kUInt8).contiguous();
  Image out(static_cast<int>(mask.size(1)), static_cast<int>(mask.size(0)));
  for (int64_t i = 0; i < bytes.numel(); ++i)
    for (int c = 0; c < 3; ++c) out.rgb[3 * i + c] = bytes.data_ptr<uint8_t>()[i];
  return out;
}

Image tile_of(const Image& image) {
  Image out(kTile, kTile);
  for (int y = 0; y < kTile; ++y)
    for (int x = 0; x < kTile; ++x)
      std::copy_n(image.row(y * image.height / kTile) + 3 * (x * image.width / kTile), 3, out.row(y) + 3 * x);
  return out;
}

}  // namespace

std::string chart_svg(const ChartStep& chart, const Recipe& recipe, const Outcome& outcome) {
  const auto lines = chart_lines(chart, recipe, outcome);
  double low = 1e300, high = -1e300;
  for (const auto& line : lines)
    for (const auto& [at, v] : line.points) low = std::min(low, v.low), high = std::max(high, v.high);
  if (low > high) low = 0, high = 1;
  const double room = std::max(1e-3, 0.08 * (high - low));
  low -= room, high += room;
  const double height =
      std::max(kChartTop + kChartHeight + 48, kChartTop + 20.0 * static_cast<double>(lines.size()));
  const auto x_of = [&](size_t i) {
    return kChartLeft + kChartWidth * (static_cast<double>(i) + 0.5) / static_cast<double>(chart.rows.size());
  };
  const auto y_of = [&](double v) { return kChartTop + kChartHeight * (high - v) / (high - low); };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<style>text{{font:12px sans-serif;fill:#333}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kChartLeft + kChartWidth + 20 + kLegend, height);
  const auto text = [&](double x, double y, const std::string& words, const char* anchor) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                       escaped(words));
  };
  text(kChartLeft, 20, chart.title, "start");
  text(kChartLeft + kChartWidth / 2, kChartTop + kChartHeight + 38, chart.across, "middle");
  for (int i = 0; i <= 4; ++i) {
    const double v = low + (high - low) * i / 4;
    out += fmt::format("<path d=\"M{:.1f} {:.1f}h{:.0f}\" stroke=\"#ddd\"/>\n", kChartLeft, y_of(v),
                       kChartWidth);
    text(kChartLeft - 6, y_of(v) + 4, fmt::format("{:.3f}", v), "end");
  }
  for (size_t i = 0; i < chart.rows.size(); ++i)
    text(x_of(i), kChartTop + kChartHeight + 18, chart.rows[i], "middle");
  for (size_t n = 0; n < lines.size(); ++n) {
    const auto& line = lines[n];
    const std::string color = line.paper ? "#777777" : method_color(n);
    std::string points, marks;
    for (const auto& [at, v] : line.points) {
      points += fmt::format("{:.1f},{:.1f} ", x_of(at), y_of(v.mean));
      marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x_of(at),
                           y_of(v.mean), color);
      if (v.high > v.low)
        marks += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"{}\"/>\n", x_of(at), y_of(v.high),
                             y_of(v.low), color);
    }
    const char* dashes = line.paper ? " stroke-dasharray=\"5 4\"" : "";
    out += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n{}",
                       points, color, dashes, marks);
    const double y = kChartTop + 10 + 20.0 * static_cast<double>(n), x = kChartLeft + kChartWidth + 20;
    out += fmt::format("<path d=\"M{:.1f} {:.1f}h18\" stroke=\"{}\" stroke-width=\"3\"{}/>\n", x, y, color,
                       dashes);
    text(x + 24, y + 4, line.name, "start");
  }
  return out + "</svg>\n";
}

Image soft_masks_image(const SoftMasksStep& step, const Image& image, const Tensor& map,
                       const Context& context, Outcome& outcome) {
  const RegionGrid grid = make_grid(map.size(0), map.size(1), step.grid);
  const Tensor scores = pool(grid, map.unsqueeze(0));  // (1, K)
  const int64_t K = grid.K();
  std::vector<int64_t> ks;
  for (const double share : step.shares)
    ks.push_back(std::clamp<int64_t>(std::llround(share * static_cast<double>(K)), 1, K));
  std::sort(ks.begin(), ks.end());
  const Tensor order = std::get<1>(scores[0].sort(0, true));  // regions, best first
  const auto hard_mask = [&](int64_t k) {
    return torch::zeros({K}).index_fill_(0, order.narrow(0, 0, k), 1.0);
  };
  const size_t rows = step.taus.size() + 1, columns = ks.size() + 1;
  Image out = plain_image(kTileLeft + static_cast<int>(columns + 1) * (kTile + kTileGap),
                          kTileTop + static_cast<int>(rows) * (kTile + kTileGap));
  const TextStyle words{12, {51, 51, 51}, false};
  const auto place = [&](size_t row, size_t column, const Image& tile) {
    paste(out, kTileLeft + static_cast<int>(column) * (kTile + kTileGap),
          kTileTop + static_cast<int>(row) * (kTile + kTileGap), tile_of(tile));
  };
  const auto title = [&](size_t column, const std::string& text) {
    draw_text(out, kTileLeft + static_cast<int>(column) * (kTile + kTileGap), 8, text, words);
  };
  title(0, "image and map");
  place(0, 0, image);
  const Tensor flat = map.contiguous();
  place(1, 0,
        overlay(image, {flat.data_ptr<float>(), static_cast<size_t>(flat.numel())},
                static_cast<int>(map.size(1)), static_cast<int>(map.size(0))));
  for (size_t i = 0; i < ks.size(); ++i) title(i + 1, fmt::format("top {} of {}", ks[i], K));
  title(columns, "deleted");
  size_t shown = 0;  // the column whose image is shown with its regions deleted
  for (size_t i = 0; i < ks.size(); ++i)
    if (2 * ks[i] <= K) shown = i;
  for (size_t r = 0; r < rows; ++r) {
    const bool hard = r == step.taus.size();
    Tensor masks, half;  // (S, K), (K)
    if (hard) {
      std::vector<Tensor> all;
      for (const int64_t k : ks) all.push_back(hard_mask(k));
      masks = torch::stack(all), half = hard_mask(K / 2);
    } else {
      SoftSortOptions options;
      options.tau = step.taus[r], options.noise = step.noise;
      masks = soft_top_k(scores, ks, options, {}, context).masks[0];
      half = soft_top_k(scores, std::vector<int64_t>{K / 2}, options, {}, context).masks[0][0];
    }
    const double contrast = (half.index_select(0, order.narrow(0, 0, K / 2)).mean() -
                             half.index_select(0, order.narrow(0, K / 2, K - K / 2)).mean())
                                .item<double>();
    const std::string name = hard ? "hard order" : fmt::format("tau = {:g}", step.taus[r]);
    const int y = kTileTop + static_cast<int>(r) * (kTile + kTileGap) + kTile / 2;
    draw_text(out, 6, y - 16, name, {13, {0, 0, 0}, true});
    draw_text(out, 6, y + 2, fmt::format("contrast {:.2f}", contrast), words);
    const Tensor pixels = upsample(grid, masks.unsqueeze(0))[0];  // (S, H, W)
    for (size_t i = 0; i < ks.size(); ++i) place(r, i + 1, gray_image(pixels[static_cast<int64_t>(i)]));
    Image deleted = image;
    const Tensor mask = pixels[static_cast<int64_t>(shown)].contiguous();
    for (int64_t i = 0; i < mask.numel(); ++i)
      for (int c = 0; c < 3; ++c) {
        uint8_t& value = deleted.rgb[3 * i + c];
        value = static_cast<uint8_t>(std::lround(value * (1 - mask.data_ptr<float>()[i])));
      }
    place(r, columns, deleted);
    OutcomeRow row{step.target, "predicted", name, "", 1};
    row.found["contrast"] = {{contrast, contrast, contrast}};
    outcome.rows.push_back(std::move(row));
  }
  if (std::none_of(outcome.columns.begin(), outcome.columns.end(),
                   [](auto& c) { return c.name == "contrast"; }))
    outcome.columns.push_back({"contrast", 0});
  return out;
}

}  // namespace aha
