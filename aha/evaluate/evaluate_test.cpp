#include "aha/evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/evaluate/report.h"
#include "aha/evaluate/table.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

using checks::fresh_path;

// Images of waves, 8 x 8, with labels that the linear target sometimes gets right.
class Waves : public Dataset {
 public:
  explicit Waves(int64_t size) : size_(size) {}
  std::string name() const override { return "waves"; }
  int64_t size() const override { return size_; }
  int label(int64_t index) const override { return static_cast<int>(index % 4); }
  std::string id(int64_t index) const override { return "wave/" + std::to_string(index); }
  Image image(int64_t index) const override {
    Image image(8, 8);
    for (size_t i = 0; i < image.rgb.size(); ++i)
      image.rgb[i] = static_cast<uint8_t>(
          127 + 120 * std::sin(0.7 * static_cast<double>(i) + 1.9 * static_cast<double>(index)));
    return image;
  }

 private:
  int64_t size_;
};

EvaluateOptions small_options() {
  EvaluateOptions options;
  options.methods = {"random", "gradient", "ig:steps=4:signed=true"};
  options.images = 2;
  options.timing_runs = 1;
  options.references = {"black", "mean"};
  return options;
}

SweepCurves flat_curves(double top, double bottom) {
  return {std::vector<double>(10, top), std::vector<double>(10, bottom), std::vector<double>(10, 1),
          std::vector<double>(10, 1)};
}

Row flat_row(const std::string& image, const std::string& method, double top, double bottom) {
  Row row{image, method, "predicted", 3, "ok", 0.25, {}, {}};
  row.curves["black"] = flat_curves(top, bottom);
  row.replaced["black"] = 0.01;
  return row;
}

SummaryOptions flat_options(int images) {
  SummaryOptions o;
  o.methods = {"a", "b"}, o.explained = {"predicted"}, o.references = {"black"};
  o.metrics = metrics_from_names({"ins-del"});
  for (int i = 0; i < images; ++i) o.images.push_back(std::to_string(i));
  return o;
}

TEST(RowStore, ContinuesWhereItStopped) {
  const auto folder = fresh_path("evaluate_continue");
  {
    RowStore store(folder, {{"seed", 1}});
    store.add({flat_row("0", "a", 0.1, 0.7)});
    store.add("a", Timing{0.5, 3});
  }
  std::ofstream(fs::path(folder) / "rows.jsonl", std::ios::app) << R"({"image":"1","method":"a","expl)";
  {
    RowStore store(folder, {{"seed", 1}});
    EXPECT_EQ(store.size(), 1u);
    ASSERT_NE(store.find("0", "a", "predicted"), nullptr);
    EXPECT_EQ(store.find("0", "a", "predicted")->curves.at("black").bottom, std::vector<double>(10, 0.7));
    EXPECT_EQ(store.find("1", "a", "predicted"), nullptr);
    EXPECT_EQ(store.timing("a")->runs, 3);
    store.add({flat_row("1", "a", 0.2, 0.6)});
  }
  EXPECT_EQ(RowStore(folder, {{"seed", 1}}).size(), 2u);
}

TEST(RowStore, RefusesOtherSettingsAndForeignFiles) {
  const auto folder = fresh_path("evaluate_refuse");
  RowStore(folder, {{"seed", 1}});
  try {
    RowStore(folder, {{"seed", 2}});
    FAIL() << "other settings were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_NE(std::string(error.what()).find("seed: 1 there, 2 here"), std::string::npos) << error.what();
  }
  write_file_atomically((fs::path(folder) / "rows.jsonl").string(), "shopping list\n");
  EXPECT_THROW(RowStore(folder, {{"seed", 1}}), Error);
}

TEST(RowStore, AnotherExplainerLeavesTheRowsOfOtherMethods) {
  const auto folder = fresh_path("evaluate_explainers");
  const auto learned_row = [] {
    Row row = flat_row("0", "aha", 0.1, 0.7);
    row.learned = true;
    return row;
  };
  {
    RowStore store(folder, {{"seed", 1}});
    store.take_explainer({{"sha256", "one"}});
    store.add({flat_row("0", "chefer", 0.2, 0.6), learned_row()});
    store.add("chefer", Timing{0.5, 3});
    store.add("aha", Timing{0.5, 3, true});
  }
  {
    RowStore store(folder, {{"seed", 1}});
    store.take_explainer({{"sha256", "one"}});
    EXPECT_EQ(store.size(), 2u);
    store.take_explainer({{"sha256", "two"}});
    EXPECT_EQ(store.size(), 1u);
    EXPECT_NE(store.find("0", "chefer", "predicted"), nullptr);
    EXPECT_NE(store.timing("chefer"), nullptr);
    EXPECT_EQ(store.timing("aha"), nullptr);
    store.add({learned_row()});
  }
  // The rows of the second are kept, and going back to the first forgets them.
  RowStore store(folder, {{"seed", 1}});
  EXPECT_EQ(store.size(), 2u);
  store.take_explainer({{"sha256", "one"}});
  EXPECT_EQ(store.size(), 1u);
}

TEST(Summary, MeansAreOverTheImagesThatEveryMethodExplained) {
  const auto folder = fresh_path("evaluate_common");
  RowStore store(folder, {});
  for (const std::string image : {"0", "1", "2"}) {
    store.add({flat_row(image, "a", 0.2, 0.8), flat_row(image, "b", 0.4, 0.6)});
  }
  Row broken = flat_row("2", "b", 0, 0);
  broken.state = "constant";
  broken.curves.clear();
  store.add({broken});
  const Summary s = summarize(store, flat_options(3));
  EXPECT_EQ(s.images, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(s.left_out.at("b: constant"), 1);
  EXPECT_EQ(s.row("b", "predicted").unusable, 1);
  EXPECT_NEAR(s.row("a", "predicted").metrics.at("deletion").value.mean, 0.9 * 0.2, 1e-12);
  EXPECT_NEAR(s.row("a", "predicted").metrics.at("ins-del").value.mean, 0.9 * 0.6, 1e-12);
  const auto& difference = s.row("a", "predicted").metrics.at("ins-del");
  EXPECT_EQ(difference.rival, "b");
  EXPECT_NEAR(difference.difference.difference.mean, 0.9 * 0.4, 1e-12);
  EXPECT_EQ(difference.difference.win_rate, 1);
  EXPECT_NEAR(s.row("a", "predicted").tie_rate, 0.25, 1e-12);
}

TEST(Summary, LowerDeletionIsAWin) {
  RowStore store(fresh_path("evaluate_lower"), {});
  for (int i = 0; i < 4; ++i)
    store.add(
        {flat_row(std::to_string(i), "a", 0.1 + 0.01 * i, 0.8), flat_row(std::to_string(i), "b", 0.3, 0.8)});
  const Summary s = summarize(store, flat_options(4));
  EXPECT_EQ(s.row("a", "predicted").metrics.at("deletion").difference.win_rate, 1);
  EXPECT_LT(s.row("a", "predicted").metrics.at("deletion").difference.difference.mean, 0);
  EXPECT_EQ(s.row("b", "predicted").metrics.at("insertion").difference.win_rate, 0.5);
}

TEST(KendallTau, CountsSwappedPairs) {
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {10, 20, 30}), 1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {30, 20, 10}), -1);
  EXPECT_NEAR(kendall_tau({1, 2, 3}, {10, 30, 20}), 1.0 / 3, 1e-12);
}

TEST(Protocol, NamedOnesAreWhatTheySay) {
  const Protocol paper = protocol_named("paper"), equations = protocol_named("equations");
  EXPECT_EQ(sweep_options(paper).rule, AreaRule::kAuc10);
  EXPECT_EQ(paper.steps, 10);
  EXPECT_EQ(paper.references, (std::vector<std::string>{"black", "mean", "blur"}));
  EXPECT_EQ(sweep_options(equations).rule, AreaRule::kMeanK);
  EXPECT_THROW(protocol_named("papre"), Error);
}

TEST(Protocol, RefusesWhatItDoesNotKnow) {
  const auto folder = fresh_path("evaluate_protocol");
  make_directories(folder);
  const auto refuse = [&](const std::string& text) {
    const auto path = (fs::path(folder) / "mine.toml").string();
    write_file_atomically(path, text);
    EXPECT_THROW(protocol_from_file(path), Error) << text;
  };
  refuse("stepz = 3\n");
  refuse("steps = 1\n");
  refuse("steps = 12\narea = \"auc10\"\n");
  refuse("references = []\n");
  refuse("references = [\"white\"]\n");
  refuse("steps = = 3\n");
}

TEST(Evaluate, AnInterruptedRunEndsWithTheSameFigures) {
  checks::LinearTarget target(8);
  const Context context;
  auto options = small_options();
  options.explained = "both";
  const auto whole_folder = fresh_path("evaluate_whole"), parts_folder = fresh_path("evaluate_parts");
  const auto whole = evaluate({target}, Waves(11), options, whole_folder, context);

  auto fewer = options;
  fewer.methods = {"gradient"};
  evaluate({target}, Waves(5), fewer, parts_folder, context);
  Context other_batches = context;
  other_batches.batch_size = 3;
  const auto parts = evaluate({target}, Waves(11), options, parts_folder, other_batches);
  EXPECT_EQ(per_image_csv(whole), per_image_csv(parts));
  EXPECT_EQ(whole.summary.rows.size(), 6u);
  EXPECT_LT(parts.target_evaluations, whole.target_evaluations);
  const auto again = evaluate({target}, Waves(11), options, parts_folder, context);
  EXPECT_EQ(again.target_evaluations, 0);
  EXPECT_EQ(per_image_csv(whole), per_image_csv(again));

  auto others = options;
  others.references = {"black"};
  EXPECT_THROW(evaluate({target}, Waves(11), others, parts_folder, context), Error);
}

// A blurred method and its plain one share the plain maps, in either order, and a plain one that is there
// already stays as it is.
TEST(Evaluate, MethodsThatMeetAreMadeTogetherWithTheSameFigures) {
  constexpr int kImages = 5, kMasks = 40;
  auto options = small_options();
  options.timing_runs = 0;
  const auto evaluated = [&](std::vector<std::string> methods, const std::string& folder,
                             int64_t* asked = nullptr) {
    checks::Counted<checks::LinearTarget> target(8);
    options.methods = std::move(methods);
    const auto result = evaluate({target}, Waves(kImages), options, folder, Context());
    if (asked) *asked = target.evaluations - result.target_evaluations;  // for maps, not for the metrics
    return result;
  };
  const std::string plain = "rise:masks=40", blurred = "rise:blur=1:masks=40";
  const auto alone = evaluated({plain}, fresh_path("evaluate_plain")),
             alone_blurred = evaluated({blurred}, fresh_path("evaluate_blurred"));
  for (const auto& order : {std::vector{plain, blurred}, std::vector{blurred, plain}}) {
    int64_t asked = 0;
    const std::string folder = fresh_path("evaluate_together");
    const auto together = evaluated(order, folder, &asked);
    EXPECT_EQ(asked, kImages * kMasks);
    for (const auto& [method, expected] : {std::pair(plain, &alone), std::pair(blurred, &alone_blurred)})
      EXPECT_EQ(together.summary.row(method, "predicted").metrics.at("ins-del").value.mean,
                expected->summary.row(method, "predicted").metrics.at("ins-del").value.mean);
  }
  const std::string folder = fresh_path("evaluate_one_after_the_other");
  evaluated({plain}, folder);
  const auto later = evaluated({plain, blurred}, folder);
  EXPECT_EQ(later.summary.row(blurred, "predicted").metrics.at("ins-del").value.mean,
            alone_blurred.summary.row(blurred, "predicted").metrics.at("ins-del").value.mean);
}

TEST(Evaluate, ExactEvidenceBeatsChance) {
  checks::LinearTarget target(8);
  const auto result =
      evaluate({target}, Waves(16), small_options(), fresh_path("evaluate_chance"), Context());
  const auto& exact = result.summary.row("ig:steps=4:signed=true", "predicted").metrics.at("ins-del");
  const auto& chance = result.summary.row("random", "predicted").metrics.at("ins-del");
  EXPECT_GT(exact.value.low, chance.value.high);
  EXPECT_LT(exact.corrected_p, 0.05);
}

TEST(Evaluate, WritesFilesThatStandAlone) {
  checks::LinearTarget target(8);
  const auto folder = fresh_path("evaluate_files");
  const auto result = evaluate({target}, Waves(4), small_options(), folder, Context());
  for (const auto& file : write_results(result, folder)) EXPECT_GT(fs::file_size(file), 100u) << file;
  const auto json = nlohmann::json::parse(read_file((fs::path(folder) / "results.json").string()));
  EXPECT_EQ(json["images"], 4);
  EXPECT_EQ(json["rows"].size(), 3u);
  EXPECT_TRUE(json["rows"][0]["metrics"]["deletion"]["per_reference"].contains("black"));
  const auto html = read_file((fs::path(folder) / "report.html").string());
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("src=\"http"), std::string::npos);
  EXPECT_NE(html.find("data:image/png;base64,"), std::string::npos);
}

class NoLabels : public Waves {
 public:
  using Waves::Waves;
  int label(int64_t) const override { return -1; }
};

TEST(Evaluate, RefusesWhatCannotBeEvaluated) {
  checks::LinearTarget target(8);
  auto options = small_options();
  options.explained = "truth";
  EXPECT_THROW(evaluate({target}, NoLabels(4), options, fresh_path("evaluate_labels"), Context()), Error);
  EXPECT_THROW(evaluate({target}, Waves(0), small_options(), fresh_path("evaluate_none"), Context()), Error);
  options = small_options();
  options.methods = {"rollout"};
  EXPECT_THROW(evaluate({target}, Waves(4), options, fresh_path("evaluate_fit"), Context()), Error);
  options = small_options();
  options.metrics = {"delection"};
  EXPECT_THROW(evaluate({target}, Waves(4), options, fresh_path("evaluate_metric"), Context()), Error);
}

}  // namespace
}  // namespace aha
