#include "aha/evaluate/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

#include "aha/base/rng.h"
#include "aha/evaluate/curves_svg.h"
#include "aha/evaluate/table.h"
#include "aha/image/colors.h"

namespace aha {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

struct Flat {
  double top, bottom;
};

// Rows of methods whose curves are flat, with a little noise that depends on image and method.
struct Made {
  std::vector<Row> rows;
  RowTable table;
  SummaryOptions options;
  Summary summary() {
    RowTable found = table;
    for (const auto& image : options.images) {
      std::vector<RowTable::MeasuredRow> of_image;
      for (const Row& row : rows)
        if (row.image == image) of_image.push_back({row});
      if (!of_image.empty()) found.add(of_image, options);
    }
    return summarize(found, options);
  }
};

Made made(const std::vector<std::pair<std::string, Flat>>& methods, int images, double noise = 0.02) {
  Made out;
  auto& o = out.options;
  o.explained = {"predicted"}, o.references = {"black"},
  o.metrics = metrics_from_names({"ins-del", "neg-pos"});
  for (int i = 0; i < images; ++i) o.images.push_back("image " + std::to_string(i));
  for (const auto& [name, flat] : methods) {
    o.methods.push_back(name);
    o.facts.emplace_back();
    for (int i = 0; i < images; ++i) {
      Rng rng(7, stream_id({static_cast<uint64_t>(i), o.methods.size()}));
      Row row;
      row.image = o.images[i], row.method = name, row.explained = "predicted";
      const std::vector<double> top(10, flat.top + noise * rng.normal()),
          bottom(10, flat.bottom + noise * rng.normal());
      row.curves["black"] = {top, bottom, top, bottom};
      row.replaced["black"] = 0.01;
      row.made.passes = {1, 0};
      out.rows.push_back(row);
    }
  }
  out.table.timings.assign(methods.size(), Timing{0.5, 3});
  return out;
}

Made usual(int images = 40) {
  auto out = made(
      {{"aha", {0.2, 0.7}}, {"slow", {0.25, 0.65}}, {"random", {0.4, 0.5}}, {"greedy", {0.1, 0.9}}}, images);
  out.options.facts = {{MethodKind::kLearned, true, {"deletion", "insertion"}},
                       {MethodKind::kAny, false, {}},
                       {MethodKind::kControl, false, {}},
                       {MethodKind::kCeiling, false, {"deletion", "insertion"}}};
  return out;
}

TEST(Summary, PlacesAreBetweenTheBestFloorAndTheBestCeiling) {
  const Summary s = usual().summary();
  EXPECT_EQ(s.bounds.at("predicted").at("deletion").floor, "random");
  EXPECT_EQ(s.bounds.at("predicted").at("deletion").ceiling, "greedy");
  for (const char* metric : {"deletion", "insertion", "ins-del"}) {
    const auto value = [&](const char* method) {
      return s.row(method, "predicted").metrics.at(metric).value.mean;
    };
    EXPECT_NEAR(s.row("aha", "predicted").metrics.at(metric).place,
                100 * (value("aha") - value("random")) / (value("greedy") - value("random")), 1e-9)
        << metric;
    EXPECT_NEAR(s.row("random", "predicted").metrics.at(metric).place, 0, 1e-9);
    EXPECT_NEAR(s.row("greedy", "predicted").metrics.at(metric).place, 100, 1e-9);
  }
  EXPECT_NEAR(s.row("aha", "predicted").metrics.at("deletion").place, 67, 3);
  auto without = usual();
  without.options.facts[3].kind = MethodKind::kAny;
  EXPECT_TRUE(std::isnan(without.summary().row("aha", "predicted").metrics.at("deletion").place));
}

TEST(Summary, CeilingsAreNoRivals) {
  const Summary s = usual().summary();
  EXPECT_EQ(s.row("aha", "predicted").metrics.at("ins-del").rival, "slow");
  EXPECT_EQ(s.row("slow", "predicted").metrics.at("ins-del").rival, "aha");
  EXPECT_EQ(place_among(s, s.row("greedy", "predicted"), metric_record("ins-del")), 0);
  EXPECT_EQ(place_among(s, s.row("aha", "predicted"), metric_record("ins-del")), 1);
  EXPECT_EQ(place_among(s, s.row("random", "predicted"), metric_record("ins-del")), 3);
  EXPECT_EQ(s.row("greedy", "predicted").rank.mean, 0);
  EXPECT_EQ(s.row("aha", "predicted").rank.mean, 1);
  EXPECT_EQ(s.row("random", "predicted").rank.mean, 3);
}

TEST(Summary, MarksWhatAMethodWasOptimizedFor) {
  const Summary s = usual().summary();
  const auto& own = s.row("aha", "predicted").metrics;
  EXPECT_TRUE(own.at("deletion").optimized);
  EXPECT_TRUE(own.at("ins-del").optimized) << "a difference whose parts are";
  EXPECT_FALSE(own.at("positive").optimized);
  EXPECT_FALSE(own.at("neg-pos").optimized);
  EXPECT_FALSE(s.row("slow", "predicted").metrics.at("deletion").optimized);
}

TEST(Summary, GroupsByCost) {
  auto m = usual();
  for (Row& row : m.rows)
    if (row.method == "slow") row.made.passes = {8, 8};
  const Summary s = m.summary();
  const auto groups = grouped_rows(s, "predicted");
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].group, CostGroup::kOneForward);
  EXPECT_EQ(groups[0].rows[0]->method, "aha");
  EXPECT_EQ(groups[1].group, CostGroup::kBackwards);
  EXPECT_EQ(groups[2].group, CostGroup::kCeiling);
  EXPECT_EQ(groups[3].group, CostGroup::kFloor);
  for (Row& row : m.rows)
    if (row.method == "slow") row.made.passes = {8, 0};
  EXPECT_EQ(m.summary().row("slow", "predicted").group, CostGroup::kForwards);
}

// One comparison of a method with its rival, corrected for all 4 methods x 6 metrics of the table.
TEST(Summary, HolmIsOverTheWholeTable) {
  const Summary s = usual(13).summary();  // exact sign flips: p = 2 / 2^13 where all images agree
  const auto& m = s.row("aha", "predicted").metrics.at("ins-del");
  EXPECT_DOUBLE_EQ(m.difference.p_value, 2 / 8192.0);
  EXPECT_GE(m.corrected_p, 12 * 2 / 8192.0);
  EXPECT_LE(m.corrected_p, 24 * 2 / 8192.0);
  std::vector<double> p, corrected;
  for (const auto& row : s.rows)
    for (const auto& [name, metric] : row.metrics) {
      p.push_back(metric.difference.p_value);
      corrected.push_back(metric.corrected_p);
    }
  EXPECT_EQ(p.size(), 24u);
  EXPECT_EQ(corrected, holm(p));
}

TEST(Summary, SaysWhenTheRankingIsNotStable) {
  auto m = made({{"a", {0.2, 0.6}}, {"b", {0.3, 0.9}}, {"c", {0.4, 0.7}}}, 5, 0);
  m.options.metrics = metrics_from_names({"deletion", "insertion"});
  const Summary s = m.summary();
  // deletion: a b c; insertion: b c a. One of three pairs agrees.
  EXPECT_NEAR(s.between_metrics.at("predicted").tau[0][1], -1.0 / 3, 1e-12);
  EXPECT_EQ(s.between_metrics.at("predicted").tau[0][0], 1);
  EXPECT_THAT(s.warnings, Contains(HasSubstr("ranking not stable (predicted)")));
  EXPECT_NEAR(s.row("a", "predicted").rank.mean, 2, 1e-12);    // 1 and 3
  EXPECT_NEAR(s.row("b", "predicted").rank.mean, 1.5, 1e-12);  // 2 and 1
  EXPECT_NEAR(s.row("b", "predicted").rank.low, 1.5, 1e-12) << "no image says otherwise";
}

TEST(Summary, RanksHaveTheUncertaintyOfTheImages) {
  auto m = made({{"a", {0.30, 0.6}}, {"b", {0.31, 0.6}}, {"c", {0.6, 0.3}}}, 30, 0.1);
  m.options.metrics = metrics_from_names({"deletion"});
  const Summary s = m.summary();
  EXPECT_EQ(s.row("c", "predicted").rank.low, 3);
  EXPECT_EQ(s.row("a", "predicted").rank.low, 1);
  EXPECT_EQ(s.row("a", "predicted").rank.high, 2);
}

TEST(Summary, SaysWhenTrainingHasPaidOff) {
  auto m = usual();
  m.options.training_seconds = 16200;
  m.table.timings = {{0.016, 3}, {0.860, 3}, {0.001, 3}, {0.010, 3}};
  const Summary s = m.summary();
  ASSERT_EQ(s.break_even.size(), 2u) << "controls are no alternative";
  EXPECT_EQ(s.break_even[0].slower, "slow");
  EXPECT_EQ(maps_text(s.break_even[0].maps), "19,195");
  EXPECT_EQ(maps_text(s.break_even[1].maps), "never");
  m.options.training_seconds = 0;
  EXPECT_TRUE(m.summary().break_even.empty()) << "nobody knows";
}

TEST(Summary, ImagesThatAreNotChosenAreCountedAndNoFailures) {
  auto m = usual(10);
  m.options.images.push_back("unsure");
  m.table.not_chosen["unsure"] = "probability below 0.6";
  const Summary s = m.summary();
  EXPECT_EQ(s.images.size(), 10u);
  EXPECT_EQ(s.asked, 11);
  EXPECT_TRUE(s.failures.empty());
  EXPECT_EQ(s.left_out.at("not chosen: probability below 0.6"), 1);
}

// 30 methods x 20 metrics x 1,000 images: the size that must stay quick.
TEST(Summary, ATableOfManyMethodsAndMetricsIsQuick) {
  std::vector<std::pair<std::string, Flat>> methods;
  for (int i = 0; i < 30; ++i) methods.push_back({"m" + std::to_string(i), {0.2 + 0.02 * i, 0.8 - 0.02 * i}});
  auto m = made(methods, 1000, 0.05);
  m.options.metrics.clear();
  for (int i = 0; i < 20; ++i) {
    MetricRecord record = metric_record(i % 2 ? "insertion" : "deletion");
    record.name += std::to_string(i);
    m.options.metrics.push_back(record);
  }
  const Summary s = m.summary();
  const auto& best = s.row("m0", "predicted").metrics.at("deletion0");
  EXPECT_EQ(best.rival, "m1");
  EXPECT_LT(best.corrected_p, 0.05) << "0.018 apart, 0.05 of noise, 600 comparisons";
  EXPECT_NEAR(best.detectable, 2.8016 * 0.9 * 0.05 * std::sqrt(2.0) / std::sqrt(1000.0), 5e-4);
  EXPECT_NEAR(s.row("m0", "predicted").rank.mean, 1, 0.2);
}

Evaluation evaluation_of(Made& m) {
  Evaluation e;
  e.summary = m.summary();
  e.settings = {{"target", {{"name", "t"}}}, {"data", "d"}, {"protocol", {{"name", "paper"}, {"steps", 10}}}};
  return e;
}

std::vector<std::string> cells(const std::string& line, char separator) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, separator);) out.push_back(cell);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  return cells(text, '\n');
}

TEST(Table, ColumnsOfCsvFilesHaveNamesOfTheirOwn) {
  auto m = usual();
  for (Row& row : m.rows) row.curves["mean"] = row.curves["black"], row.replaced["mean"] = 0;
  m.options.references = {"black", "mean"};
  const Evaluation e = evaluation_of(m);
  for (const auto& text : {results_csv(e), per_image_csv(e), curves_csv(e)}) {
    const auto lines = lines_of(text);
    const auto names = cells(lines[0], ',');
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size()) << lines[0];
    for (const auto& line : lines)
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), std::ssize(names) - 1) << line;
  }
}

TEST(Table, MarkdownMarksTheBestThreeAndWhatWasOptimized) {
  auto m = usual();
  m.table.timings.assign(4, Timing{0.01, 3});
  const std::string text = table_markdown(evaluation_of(m));
  EXPECT_THAT(text, HasSubstr("**¹† ["));
  EXPECT_THAT(text, HasSubstr("² ["));
  EXPECT_THAT(text, HasSubstr("| *floors: controls* |"));
  EXPECT_THAT(text, HasSubstr("| *ceilings: searched on each image* |"));
  EXPECT_THAT(text, HasSubstr("†: the method's maps are searched or trained"));
  size_t columns = 0;
  for (const auto& line : lines_of(text)) {
    if (line.empty() || line[0] != '|') {
      columns = 0;
      continue;
    }
    const auto found = static_cast<size_t>(std::count(line.begin(), line.end(), '|'));
    if (columns == 0) columns = found;
    EXPECT_EQ(found, columns) << line;
  }
}

// No compiler here: what one would refuse first is looked for.
TEST(Table, LatexIsBalanced) {
  auto m = made({{"a_b:x=1%", {0.2, 0.7}}, {"c\\d~e^f&g", {0.3, 0.6}}, {"aha", {0.1, 0.8}}}, 5);
  m.options.facts[2] = {MethodKind::kLearned, true, {"deletion"}};
  const std::string text = table_latex(evaluation_of(m));
  int depth = 0, dollars = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
      continue;
    }
    depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    dollars += text[i] == '$';
    EXPECT_GE(depth, 0) << i;
  }
  EXPECT_EQ(depth, 0);
  EXPECT_EQ(dollars % 2, 0);
  EXPECT_THAT(text, HasSubstr("a\\_b:x=1\\%"));
  EXPECT_THAT(text, HasSubstr("c\\textbackslash{}d\\textasciitilde{}e\\textasciicircum{}f\\&g"));
  EXPECT_THAT(text, HasSubstr("\\mathbf{"));
  EXPECT_THAT(text, HasSubstr("^{\\dagger}"));
  for (const auto& line : lines_of(text)) {
    if (!line.ends_with("\\\\") || line.starts_with("\\multicolumn")) continue;
    size_t separators = 0;
    for (size_t i = 0; i < line.size(); ++i) separators += line[i] == '&' && (i == 0 || line[i - 1] != '\\');
    EXPECT_EQ(separators, 7u) << line;  // 6 metrics and the time
  }
}

TEST(Curves, TheFigureIsTheSameAsTextAndAsPixels) {
  auto m = usual();
  const Evaluation e = evaluation_of(m);
  const std::string svg = curves_svg(e, "predicted");
  EXPECT_THAT(svg, HasSubstr("data-name=\"aha\""));
  const Image image = curves_image(e, "predicted", 1);
  EXPECT_THAT(svg, HasSubstr(fmt::format("viewBox=\"0 0 {} {}\"", image.width, image.height)));
  // The curve of the best method is flat: its color is somewhere in its row, and the paper is white.
  const std::string hex = method_color(0);
  const Color wanted = {static_cast<uint8_t>(std::stoi(hex.substr(1, 2), nullptr, 16)),
                        static_cast<uint8_t>(std::stoi(hex.substr(3, 2), nullptr, 16)),
                        static_cast<uint8_t>(std::stoi(hex.substr(5, 2), nullptr, 16))};
  int found = 0;
  for (size_t i = 0; i < image.rgb.size(); i += 3)
    found += image.rgb[i] == wanted[0] && image.rgb[i + 1] == wanted[1] && image.rgb[i + 2] == wanted[2];
  EXPECT_GT(found, 300);
  EXPECT_EQ(image.rgb[0], 255);
}

}  // namespace
}  // namespace aha
