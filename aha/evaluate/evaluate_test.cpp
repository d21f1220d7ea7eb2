#include "aha/evaluate/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"
#include "aha/base/parallel.h"
#include "aha/evaluate/curves_svg.h"
#include "aha/evaluate/map_maker.h"
#include "aha/evaluate/report.h"
#include "aha/evaluate/row_key.h"
#include "aha/evaluate/table.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/image/read.h"
#include "aha/methods/catalog.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_explainer.h"
#include "aha/testing/tiny_targets.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

using checks::fresh_folder;
using checks::fresh_path;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

// Square images of waves, with labels that the linear target sometimes gets right.
class Waves : public Dataset {
 public:
  explicit Waves(int64_t size, int side = 8) : size_(size), side_(side) {}
  std::string name() const override { return "waves"; }
  int64_t size() const override { return size_; }
  int label(int64_t index) const override { return static_cast<int>(index % 4); }
  std::string id(int64_t index) const override { return "wave/" + std::to_string(index); }
  Image image(int64_t index) const override {
    Image image(side_, side_);
    for (size_t i = 0; i < image.rgb.size(); ++i)
      image.rgb[i] = static_cast<uint8_t>(
          127 + 120 * std::sin(0.7 * static_cast<double>(i) + 1.9 * static_cast<double>(index)));
    return image;
  }

 private:
  int64_t size_;
  int side_;
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
  Row row;
  row.key = image + "/" + method;
  row.image = image, row.method = method, row.explained = "predicted";
  row.class_index = 3, row.tie_rate = 0.25;
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

// Rows of two methods, image by image.
RowTable table_of(const std::vector<Row>& rows, const SummaryOptions& options) {
  RowTable table;
  for (size_t i = 0; i + 1 < rows.size(); i += 2) table.add({{rows[i]}, {rows[i + 1]}}, options);
  return table;
}

TEST(RowStore, ContinuesWhereItStopped) {
  const auto folder = fresh_path("evaluate_continue");
  {
    RowStore store(folder);
    Row row = flat_row("0", "a", 0.1, 0.7);
    row.made = {{37, 36}, 2, 0.5};
    store.add({row});
    store.add("timed", "a", Timing{0.5, 3});
  }
  std::ofstream(fs::path(folder) / "rows.jsonl", std::ios::app)
      << R"({"key":"1/a","image":"1","method":"a","expl)";
  {
    RowStore store(folder);
    EXPECT_EQ(store.size(), 1u);
    const auto row = store.find("0/a");
    ASSERT_TRUE(row);
    EXPECT_EQ(row->curves.at("black").bottom, std::vector<double>(10, 0.7));
    EXPECT_EQ(row->made.passes.forwards, 37);
    EXPECT_EQ(row->made.passes.backwards, 36);
    EXPECT_EQ(row->made.steps, 2);
    EXPECT_EQ(row->made.loss, 0.5);
    EXPECT_FALSE(store.has("1/a"));
    EXPECT_FALSE(store.find("1/a"));
    ASSERT_NE(store.timing("timed"), nullptr);
    EXPECT_EQ(store.timing("timed")->runs, 3);
    store.add({flat_row("1", "a", 0.2, 0.6)});
  }
  EXPECT_EQ(RowStore(folder).size(), 2u);
}

// Bytes that are in use after `work` and were not before, for each of `count`.
template <class Work>
double bytes_kept_each(int count, const Work& work) {
  const auto in_use = [] {
    const auto info = ::mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const double before = in_use();
  work();
  return (in_use() - before) / count;
}

// 50,000 images with 30 methods are 1.5 million rows of two kilobytes.
TEST(RowStore, KeepsItsRowsOnDisk) {
  const auto folder = fresh_path("evaluate_on_disk");
  constexpr int kImages = 2000;
  const std::string digits(28, '0');
  const auto row_of = [&](int i) {
    Row row = flat_row(fmt::format("{:04}", i), "a", 0.123456789, 0.987654321);
    row.key = digits + row.image;
    row.curves["mean"] = row.curves["blur"] = row.curves["black"];
    return row;
  };
  RowTable table;
  const auto options = [] {
    SummaryOptions o = flat_options(0);
    o.methods = {"a"};
    return o;
  }();
  {
    RowStore store(folder);
    EXPECT_LT(bytes_kept_each(kImages,
                              [&] {
                                for (int i = 0; i < kImages; ++i) store.add({row_of(i)});
                              }),
              250);
    EXPECT_LT(bytes_kept_each(kImages,
                              [&] {
                                for (int i = 0; i < kImages; ++i)
                                  table.add({{*store.find(digits + fmt::format("{:04}", i))}}, options);
                              }),
              100);
  }
  EXPECT_GT(static_cast<double>(fs::file_size(fs::path(folder) / "rows.jsonl")) / kImages, 1000);
  std::unique_ptr<RowStore> again;
  EXPECT_LT(bytes_kept_each(kImages, [&] { again = std::make_unique<RowStore>(folder); }), 250);
  const auto last = again->find(digits + "1999");
  ASSERT_TRUE(last);
  EXPECT_EQ(last->curves.at("blur").bottom, std::vector<double>(10, 0.987654321));
}

TEST(RowStore, RefusesForeignFilesAndLeavesRowsOfEarlierVersions) {
  const auto folder = fresh_folder("evaluate_refuse");
  const auto path = (fs::path(folder) / "rows.jsonl").string();
  write_file_atomically(path, "shopping list\n");
  EXPECT_THAT(checks::message_of([&] { RowStore store(folder); }), HasSubstr("rows.jsonl:1: not a row"));
  write_file_atomically(path, R"({"settings":{"seed":1}})"
                              "\n"
                              R"({"image":"0","method":"a"})"
                              "\n");
  EXPECT_EQ(RowStore(folder).size(), 0u);
}

// A change of any of these facts, alone, gives another key.
TEST(RowKeys, CoverEverythingARowDependsOn) {
  checks::LinearTarget target(8);
  const nlohmann::json settings = {{"target", "t"},   {"input", "i"},  {"precision", "f32"},
                                   {"device", "cpu"}, {"numerics", 1}, {"seed", 0}};
  const auto method = make_method("ig:steps=4", {target}), other = make_method("ig:steps=5", {target});
  const KeyedImage image{"a.png", "content", 3};
  const RowKeys keys(settings, nullptr);
  const std::string key = keys.row(image, *method, "predicted"), truth = keys.row(image, *method, "truth");
  EXPECT_EQ(key, RowKeys(settings, nullptr).row(image, *make_method("ig:steps=4", {target}), "predicted"));
  EXPECT_NE(key, truth);
  EXPECT_NE(key, keys.row(image, *other, "predicted"));
  EXPECT_NE(key, keys.row({"b.png", "content", 3}, *method, "predicted"));
  EXPECT_NE(key, keys.row({"a.png", "other content", 3}, *method, "predicted"));
  EXPECT_EQ(key, keys.row({"a.png", "content", 2}, *method, "predicted")) << "the label plays no part";
  EXPECT_NE(truth, keys.row({"a.png", "content", 2}, *method, "truth"));
  for (const auto& [fact, value] : settings.items()) {
    auto changed = settings;
    changed[fact] = "another";
    EXPECT_NE(key, RowKeys(changed, nullptr).row(image, *method, "predicted")) << fact;
  }
  EXPECT_EQ(key, RowKeys(settings, {{"sha256", "one"}}).row(image, *method, "predicted"))
      << "ig uses no explainer";
  const std::string timing = keys.timing(*method, 2, "cpu");
  EXPECT_NE(timing, keys.timing(*method, 1, "cpu"));
  EXPECT_NE(timing, keys.timing(*method, 2, "another cpu"));
  EXPECT_NE(timing, keys.timing(*other, 2, "cpu"));
  auto bf16 = settings, seeded = settings;
  bf16["precision"] = "bf16", seeded["seed"] = 1;
  EXPECT_NE(timing, RowKeys(bf16, nullptr).timing(*method, 2, "cpu"));
  EXPECT_EQ(timing, RowKeys(seeded, nullptr).timing(*method, 2, "cpu")) << "the seed plays no part";
}

TEST(Summary, MeansAreOverTheImagesThatEveryMethodExplained) {
  std::vector<Row> rows;
  for (const std::string image : {"0", "1", "2", "3"}) {
    rows.push_back(flat_row(image, "a", 0.2, 0.8));
    rows.push_back(flat_row(image, "b", 0.4, 0.6));
    rows.back().made.passes = {image == "0" ? 1.0 : 3.0, 2};
  }
  rows[5].state = "constant", rows[7].state = "refinement: the loss is not finite";  // b on 2 and 3
  rows[5].curves.clear(), rows[7].curves.clear();
  RowTable table = table_of(rows, flat_options(5));
  table.unusable_images["4"] = "4.png: not an image";
  const Summary s = summarize(table, flat_options(5));
  EXPECT_EQ(s.images, (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(s.left_out,
            (std::map<std::string, int64_t>{{"b: constant", 1}, {"b: failed", 1}, {"unreadable", 1}}));
  ASSERT_EQ(s.failures.size(), 2u) << "a constant map is no failure";
  EXPECT_EQ(text_from_failure(s.failures[0]), "3: b (predicted class): refinement: the loss is not finite");
  EXPECT_EQ(text_from_failure(s.failures[1]), "4: 4.png: not an image");
  EXPECT_THAT(s.warnings, Contains(HasSubstr("4.png: not an image")));
  EXPECT_EQ(s.row("b", "predicted").unusable, 2);
  EXPECT_EQ(s.row("b", "predicted").constant, 1);
  EXPECT_EQ(s.row("a", "predicted").constant, 0);
  EXPECT_THAT(s.warnings, Contains("b (predicted): constant maps: 1 of 5"));
  EXPECT_EQ(s.row("b", "predicted").passes.forwards, 2) << "the mean over the images";
  EXPECT_NEAR(s.row("a", "predicted").metrics.at("deletion").value.mean, 0.9 * 0.2, 1e-12);
  EXPECT_NEAR(s.row("a", "predicted").metrics.at("ins-del").value.mean, 0.9 * 0.6, 1e-12);
  const auto& difference = s.row("a", "predicted").metrics.at("ins-del");
  EXPECT_EQ(difference.rival, "b");
  EXPECT_NEAR(difference.difference.difference.mean, 0.9 * 0.4, 1e-12);
  EXPECT_EQ(difference.difference.win_rate, 1);
  EXPECT_NEAR(s.row("a", "predicted").tie_rate, 0.25, 1e-12);
}

TEST(Summary, LowerDeletionIsAWin) {
  std::vector<Row> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back(flat_row(std::to_string(i), "a", 0.1 + 0.01 * i, 0.8));
    rows.push_back(flat_row(std::to_string(i), "b", 0.3, 0.8));
  }
  const Summary s = summarize(table_of(rows, flat_options(4)), flat_options(4));
  EXPECT_EQ(s.row("a", "predicted").metrics.at("deletion").difference.win_rate, 1);
  EXPECT_LT(s.row("a", "predicted").metrics.at("deletion").difference.difference.mean, 0);
  EXPECT_EQ(s.row("b", "predicted").metrics.at("insertion").difference.win_rate, 0.5);
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
}

// The number of images for which a map of `method` is new in the folder, by the rows appended there.
class Growth {
 public:
  explicit Growth(std::string folder) : path_((fs::path(folder) / "rows.jsonl").string()) {}
  std::map<std::string, int> rows() {
    std::map<std::string, int> out;
    const std::string text = fs::exists(path_) ? read_file(path_) : "";
    std::istringstream lines(text.substr(std::exchange(read_, text.size())));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      ++out[json.contains("timing") ? "timing of " + json["timing"].get<std::string>()
                                    : json["method"].get<std::string>()];
    }
    return out;
  }

 private:
  std::string path_;
  size_t read_ = 0;
};

// Waves of which one image, or one label, is another.
class ChangedWaves : public Waves {
 public:
  using Waves::Waves;
  int changed_image = -1, changed_label = -1;
  Image image(int64_t index) const override {
    Image image = Waves::image(index);
    if (index == changed_image) image.rgb[17] ^= 255;
    return image;
  }
  int label(int64_t index) const override {
    return index == changed_label ? 3 - Waves::label(index) : Waves::label(index);
  }
};

using Counts = std::map<std::string, int>;

TEST(Evaluate, ARowIsMadeAgainWhenWhatItDependsOnChangesAndNothingElseIs) {
  const std::string folder = fresh_path("evaluate_stale");
  Growth growth(folder);
  auto options = small_options();
  options.methods = {"random", "gradient"};
  options.timing_runs = 0;
  ChangedWaves data(5);
  Context context;
  const auto changes = [&](int size, const std::function<void(ClassifierInfo&)>& change) {
    struct Target : checks::LinearTarget {
      using LinearTarget::LinearTarget;
      ClassifierInfo& edit() { return info_; }
    } target(size);
    change(target.edit());
    evaluate({target}, data, options, folder, context);
    return growth.rows();
  };
  const auto same = [](ClassifierInfo&) {};
  EXPECT_EQ(changes(8, same), (Counts{{"random", 5}, {"gradient", 5}}));
  EXPECT_EQ(changes(8, same), Counts());
  data.changed_image = 3;
  EXPECT_EQ(changes(8, same), (Counts{{"random", 1}, {"gradient", 1}})) << "the content of one image";
  data.changed_image = -1;
  EXPECT_EQ(changes(8, same), Counts()) << "the rows of before are still there";
  const Counts all = {{"random", 5}, {"gradient", 5}};
  EXPECT_EQ(changes(8, [](ClassifierInfo& info) { info.sha256 = "another"; }), all);
  EXPECT_EQ(
      changes(8, [](ClassifierInfo& info) { info.input.rule = ResizeRule::kStretch, info.input.resize = 8; }),
      all);
  EXPECT_EQ(changes(8, [](ClassifierInfo& info) { info.input.filter = Filter::kBicubic; }), all);
  context.seed = 1;
  EXPECT_EQ(changes(8, same), all);
  context.seed = 0;
  options.references = {"black"};
  EXPECT_EQ(changes(8, same), all);
  options.references = {"black", "mean"};
  options.protocol = "equations";
  EXPECT_EQ(changes(8, same), all);
  options.protocol = "paper";
  options.explained = "truth";
  EXPECT_EQ(changes(8, same), all);
  data.changed_label = 2;
  EXPECT_EQ(changes(8, same), (Counts{{"random", 1}, {"gradient", 1}})) << "the label of one image";
  options.explained = "predicted";
  EXPECT_EQ(changes(8, same), Counts()) << "the predicted class does not know the labels";
}

TEST(Evaluate, AnotherCardOfTheExplainerMakesItsRowsAgainAndLeavesTheOthers) {
  ConvNextClassifier target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  LoadedExplainer loaded = checks::tiny_explainer(target);
  const std::string folder = fresh_path("evaluate_cards");
  Growth growth(folder);
  auto options = small_options();
  options.methods = {"aha", "aha:blur=1", "gradient"};
  options.timing_runs = 0;
  const auto made = [&] {
    evaluate({target, &loaded}, Waves(3, 16), options, folder, Context());
    return growth.rows();
  };
  const Counts learned = {{"aha", 3}, {"aha:blur=1", 3}};
  EXPECT_EQ(made(), (Counts{{"aha", 3}, {"aha:blur=1", 3}, {"gradient", 3}}));
  EXPECT_EQ(made(), Counts());
  loaded.card.training["S"] = 7;
  EXPECT_EQ(made(), learned) << "training";
  loaded.card.temperature = 0.5;
  EXPECT_EQ(made(), learned) << "temperature";
  loaded.card.network["prior_weight"] = 26;
  EXPECT_EQ(made(), learned) << "network";
  loaded.card.refinement["grids"] = 2;
  EXPECT_EQ(made(), learned) << "refinement";
  loaded.card.sha256 = "another";
  EXPECT_EQ(made(), learned) << "weights";
}

// The index of a pixel as its importance; counts the maps it makes.
class CountedMaps : public Method {
 public:
  static inline int made = 0;
  void prepare(const MethodContext&) override {}
  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t>,
                        const Context&) override {
    made += static_cast<int>(pixels.size(0));
    const int64_t B = pixels.size(0), H = pixels.size(2), W = pixels.size(3);
    return {torch::arange(static_cast<float>(H * W)).view({1, H, W}).repeat({B, 1, 1}), Passes{3, 1}};
  }
};

MethodRecord counted_record(const char* name, bool reads_class) {
  MethodRecord record{name,
                      "counts",
                      "",
                      "",
                      [](const MethodContext&) { return true; },
                      [] { return std::unique_ptr<Method>(new CountedMaps); }};
  record.reads_class = reads_class;
  return record;
}

TEST(Evaluate, AKeptMapServesEveryLaterMetricReferenceAndProtocol) {
  static const bool added = (add_method(counted_record("counted", true)), true);
  ASSERT_TRUE(added);
  checks::LinearTarget target(8);
  const std::string folder = fresh_path("evaluate_kept_maps");
  auto options = small_options();
  options.methods = {"counted"};
  options.images = 0, options.timing_runs = 0;
  options.keep_maps = true;
  CountedMaps::made = 0;
  const auto first = evaluate({target}, Waves(5), options, folder, Context());
  EXPECT_EQ(CountedMaps::made, 5);
  options.metrics = {"ins-del", "adp", "pic"};
  const auto second = evaluate({target}, Waves(5), options, folder, Context());
  EXPECT_EQ(second.target_evaluations, 5 * (1 + 2) + 5 * 2) << "clean, replaced, and the blends";
  options.protocol = "equations";
  options.references = {"blur"};
  const auto third = evaluate({target}, Waves(5), options, folder, Context());
  EXPECT_EQ(CountedMaps::made, 5);
  EXPECT_EQ(third.summary.row("counted", "predicted").passes.forwards, 3) << "as the map was made";
  options.keep_maps = false;
  options.protocol = "paper";
  const std::string elsewhere = fresh_path("evaluate_no_kept_maps");
  options.references = {"black", "mean"};
  options.metrics = {"adp"};
  const auto alone = evaluate({target}, Waves(5), options, elsewhere, Context());
  EXPECT_EQ(CountedMaps::made, 10);
  EXPECT_EQ(alone.target_evaluations, 5 * (1 + 2) + 5 * 2) << "no curves for a metric that needs none";
  EXPECT_EQ(alone.summary.rows[0].metrics.at("adp").per_image,
            second.summary.rows[0].metrics.at("adp").per_image);
}

TEST(Evaluate, AMapThatKnowsNoClassIsSweptOnceForBoth) {
  static const bool added = (add_method(counted_record("blind", false)), true);
  ASSERT_TRUE(added);
  checks::LinearTarget target(8);
  auto options = small_options();
  options.images = 0, options.timing_runs = 0;
  options.explained = "both";
  options.references = {"black"};
  const auto evaluations = [&](const char* method) {
    options.methods = {method};
    return evaluate({target}, Waves(8), options, fresh_path("evaluate_blind"), Context());
  };
  static const bool counted = (add_method(counted_record("seeing", true)), true);
  ASSERT_TRUE(counted);
  const auto blind = evaluations("blind"), seeing = evaluations("seeing");
  EXPECT_EQ(blind.target_evaluations, 8 * (2 + 18));
  EXPECT_GT(seeing.target_evaluations, blind.target_evaluations);
  for (const char* explained : {"predicted", "truth"})
    EXPECT_EQ(blind.summary.row("blind", explained).metrics.at("ins-del").per_image,
              seeing.summary.row("seeing", explained).metrics.at("ins-del").per_image);
}

TEST(Evaluate, TimingsBelongToTheThreadsAndThePrecisionTheyWereTakenWith) {
  checks::LinearTarget target(8);
  const std::string folder = fresh_path("evaluate_timings");
  Growth growth(folder);
  auto options = small_options();
  options.methods = {"gradient"};
  Context context;
  const auto made = [&] {
    evaluate({target}, Waves(2), options, folder, context);
    return growth.rows();
  };
  const int before = threads();
  set_threads(2);
  EXPECT_EQ(made(), (Counts{{"gradient", 2}, {"timing of gradient", 1}}));
  EXPECT_EQ(made(), Counts());
  set_threads(1);
  EXPECT_EQ(made(), (Counts{{"timing of gradient", 1}})) << "figures do not depend on the threads";
  context.precision = Precision::kBf16;
  EXPECT_EQ(made(), (Counts{{"gradient", 2}, {"timing of gradient", 1}}));
  set_threads(before);
}

// The first images of another slice are other images, whatever their positions.
TEST(Evaluate, TheReportShowsTheImagesOfItsOwnSlice) {
  checks::LinearTarget target(8);
  const std::string folder = fresh_path("evaluate_slices");
  auto options = small_options();
  options.methods = {"gradient"};
  const auto shown = [&](int64_t skip) {
    return evaluate({target}, *slice(std::make_unique<Waves>(6), {skip, 1, 2}), options, folder, Context())
        .shown;
  };
  const auto first = shown(0), second = shown(2), again = shown(0);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0].id, "wave/2");
  const Image expected = image_from_tensor(input_from_image(Waves(6).image(2), target.info().input));
  EXPECT_EQ(read_image(second[0].file).rgb, expected.rgb);
  EXPECT_NE(read_npy(first[0].maps.at("gradient")).values, read_npy(second[0].maps.at("gradient")).values);
  EXPECT_EQ(again[1].file, first[1].file);
  EXPECT_EQ(again[1].maps, first[1].maps);
}

// Waves of which some cannot be read.
class TornWaves : public Waves {
 public:
  using Waves::Waves;
  Image image(int64_t index) const override {
    if (index == 1 || index == 9) throw input_error("wave {}: torn", index);
    return Waves::image(index);
  }
};

TEST(Evaluate, AnUnreadableImageIsNamedAndLeftOut) {
  checks::LinearTarget target(8);
  const auto options = small_options();
  const std::string folder = fresh_path("evaluate_torn");
  const auto result = evaluate({target}, TornWaves(11), options, folder, Context());
  EXPECT_EQ(result.summary.asked, 11);
  EXPECT_EQ(result.summary.images.size(), 9u);
  ASSERT_EQ(result.summary.failures.size(), 2u);
  EXPECT_EQ(text_from_failure(result.summary.failures[1]), "wave/9: wave 9: torn");
  write_results(result, folder);
  for (const char* file : {"table.md", "report.html", "results.json"})
    EXPECT_THAT(read_file((fs::path(folder) / file).string()), HasSubstr("wave 9: torn")) << file;
  const auto json = nlohmann::json::parse(read_file((fs::path(folder) / "results.json").string()));
  EXPECT_EQ(json["failures"].size(), 2u);
  EXPECT_EQ(json["failures"][0]["image"], "wave/1");
  // Mended, the image joins; nothing else is made again.
  Growth growth(folder);
  growth.rows();
  const auto mended = evaluate({target}, Waves(11), options, folder, Context());
  EXPECT_EQ(mended.summary.images.size(), 11u);
  EXPECT_EQ(growth.rows().at("gradient"), 2);
  auto strict = options;
  strict.strict = true;
  EXPECT_THAT(checks::message_of([&] { evaluate({target}, TornWaves(11), strict, folder, Context()); }),
              HasSubstr("wave 1: torn"));
}

TEST(Evaluate, ARefinementThatDivergesIsNamedAndTheOthersGoOn) {
  checks::LinearTarget target(16);
  auto options = small_options();
  add_method({"fails on wave 1", "", "", "", [](const MethodContext&) { return true; },
              [] {
                struct Failing : Method {
                  std::map<uint64_t, std::string> called;
                  void prepare(const MethodContext&) override {}
                  void name_images(std::span<const std::string> names,
                                   std::span<const uint64_t> streams) override {
                    for (size_t i = 0; i < names.size(); ++i) called[streams[i]] = names[i];
                  }
                  Attribution attribute(const Tensor& pixels, const Tensor&,
                                        std::span<const uint64_t> streams, const Context&) override {
                    for (const uint64_t stream : streams)
                      if (called.at(stream) == "wave/1")
                        throw work_error("refinement: the loss is not finite at step 2");
                    return {pixels.mean(1), Passes{}};
                  }
                };
                return std::unique_ptr<Method>(new Failing);
              }});
  options.methods = {"fails on wave 1", "gradient"};
  const std::string folder = fresh_path("evaluate_diverges");
  const auto result = evaluate({target}, Waves(4, 16), options, folder, Context());
  EXPECT_EQ(result.summary.images, (std::vector<std::string>{"wave/0", "wave/2", "wave/3"}));
  ASSERT_EQ(result.summary.failures.size(), 1u);
  EXPECT_EQ(text_from_failure(result.summary.failures[0]),
            "wave/1: fails on wave 1 (predicted class): refinement: the loss is not finite at step 2");
  EXPECT_EQ(result.summary.row("fails on wave 1", "predicted").unusable, 1);
  Growth growth(folder);
  growth.rows();
  const auto again = evaluate({target}, Waves(4, 16), options, folder, Context());
  EXPECT_EQ(growth.rows(), Counts()) << "what failed is known too";
  EXPECT_EQ(again.summary.failures.size(), 1u);
  options.strict = true;
  EXPECT_THAT(
      checks::message_of(
          [&] { evaluate({target}, Waves(4, 16), options, fresh_path("evaluate_strict"), Context()); }, 1),
      HasSubstr("wave/1: fails on wave 1: refinement"));
}

TEST(Evaluate, MapsMadeElsewhereAreAMethodAmongTheOthers) {
  checks::LinearTarget target(8);
  const std::string maps = fresh_folder("evaluate_maps"), folder = fresh_path("evaluate_given");
  const auto write = [&](const std::string& name, float slope) {
    std::vector<float> values(64);
    for (size_t i = 0; i < values.size(); ++i) values[i] = slope * static_cast<float>(i);
    fs::create_directories(fs::path(maps + "/" + name).parent_path());
    write_npy(maps + "/" + name, {8, 8}, values);
  };
  write("wave/0.npy", 1), write("1.npy", -1), write("2.npy", 0);
  auto options = small_options();
  options.methods = {"gradient", "maps:" + maps, "inverted:maps:" + maps};
  const std::string label = "maps:" + fs::path(maps).filename().string();
  const auto result = evaluate({target}, Waves(4), options, folder, Context());
  EXPECT_EQ(result.summary.images, (std::vector<std::string>{"wave/0", "wave/1"}));
  ASSERT_EQ(result.summary.failures.size(), 2u) << "the fourth image has no map, inverted or not";
  EXPECT_THAT(text_from_failure(result.summary.failures[0]), AllOf(HasSubstr(label), HasSubstr("3.npy")));
  EXPECT_EQ(result.summary.row(label, "predicted").constant, 1) << "the third is flat";
  // What is removed first of one is removed last of the other.
  const auto& plain = result.summary.row(label, "predicted").mean_curves;
  const auto& inverted = result.summary.row("inverted:" + label, "predicted").mean_curves;
  EXPECT_EQ(inverted.top, plain.bottom);
  EXPECT_EQ(inverted.bottom, plain.top);
  EXPECT_NE(plain.top, plain.bottom);
  // Another file, and one that was missing: their rows alone are made again.
  Growth growth(folder);
  growth.rows();
  EXPECT_EQ(evaluate({target}, Waves(4), options, folder, Context()).summary.images.size(), 2u);
  EXPECT_EQ(growth.rows(), Counts());
  write("1.npy", 2), write("3.npy", 1);
  EXPECT_EQ(evaluate({target}, Waves(4), options, folder, Context()).summary.images.size(), 3u);
  EXPECT_EQ(growth.rows(), (Counts{{label, 2}, {"inverted:" + label, 2}}));
}

// Answers NaN to images that are neither dark nor white: to the perturbed versions of a white one.
struct AfraidOfGray : checks::PlantedToy {
  using PlantedToy::PlantedToy;
  Tensor logits(const Tensor& pixels, Taps* taps) override {
    const auto mean = pixels.mean({1, 2, 3});
    return PlantedToy::logits(pixels, taps) +
           torch::where((mean > 0.55) & (mean < 0.99), std::nan(""), 0.0).unsqueeze(1);
  }
};

TEST(Evaluate, ADivergingRefinementFailsAlone) {
  AfraidOfGray target(16);
  DecoderOptions decoder{.widths = {3},
                         .scales = {1},
                         .classes = 3,
                         .embedding = 4,
                         .channels = 8,
                         .top = 8,
                         .head = 8,
                         .last_up = 1};
  LoadedExplainer loaded;
  loaded.explainer = std::make_unique<Explainer>(encoder_from_target(target, {"pixels"}), decoder);
  loaded.explainer->decoder()->eval();
  loaded.card.kind = "explainer";
  loaded.card.input = target.info().input;
  checks::MemoryDataset data;
  for (int i = 0; i < 3; ++i) {
    data.images.push_back(Image(16, 16));
    data.labels.push_back(0);
    for (size_t k = 0; k < data.images[i].rgb.size(); ++k)
      data.images[i].rgb[k] = i == 1 ? 255 : static_cast<uint8_t>((k * 37 + i) % 90);
  }
  auto options = small_options();
  options.methods = {"aha:T=2:S=2", "aha:S=2", "random"};
  const std::string folder = fresh_path("evaluate_gray");
  const auto result = evaluate({target, &loaded}, data, options, folder, Context());
  EXPECT_EQ(result.summary.images, (std::vector<std::string>{"memory/0", "memory/2"}));
  ASSERT_EQ(result.summary.failures.size(), 3u);
  EXPECT_THAT(
      text_from_failure(result.summary.failures[0]),
      AllOf(HasSubstr("memory/1: aha:T=2:S=2"), HasSubstr("the loss of refinement is not finite at step 0")));
  EXPECT_THAT(result.summary.failures[1].reason, HasSubstr("perturbed image"))
      << "its own map is there, but the target does not answer";
  EXPECT_EQ(result.summary.row("aha:T=2:S=2", "predicted").steps, 2);
  const auto again = evaluate({target, &loaded}, data, options, folder, Context());
  EXPECT_EQ(again.target_evaluations, 0);
  EXPECT_EQ(again.summary.failures.size(), 3u);
}

// Two methods made together: what fails for the one that leads does not fail for the other.
TEST(MakeMaps, AFailureOfTheLeaderLeavesTheMethodsThatShareItsWork) {
  struct Short : Method {
    void prepare(const MethodContext&) override {}
    Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t>,
                          const Context&) override {
      return {pixels.mean(1), Passes{1, 0}};
    }
  };
  struct Long : Short {
    uint64_t of_b = 0;
    Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t> streams,
                          const Context&) override {
      if (std::find(streams.begin(), streams.end(), of_b) != streams.end()) throw work_error("b diverges");
      return {pixels.amax(1), Passes{2, 0}};
    }
    bool shares_work_with(const Method& other) const override { return &other != this; }
    std::vector<Attribution> attribute_shared(std::span<Method* const> others, const Tensor& pixels,
                                              const Tensor& classes, std::span<const uint64_t> streams,
                                              const Context& context) override {
      return {attribute(pixels, classes, streams, context),
              others[0]->attribute(pixels, classes, streams, context)};
    }
  };
  Methods methods;
  methods.push_back(std::make_unique<Short>());
  auto leader = std::make_unique<Long>();
  const Tensor pixels = torch::rand({3, 3, 4, 4});
  leader->of_b = image_stream(pixels[1]);
  methods.push_back(std::move(leader));
  const auto work = shared_work(methods, {{0, 1, 2}, {0, 1, 2}});
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(work[0].methods, (std::vector<size_t>{1, 0})) << "the longer one leads";
  EXPECT_EQ(shared_work(methods, {{0, 1}, {0, 1, 2}}).size(), 2u) << "other images are other work";
  ImageBatch batch;
  for (const char* id : {"a", "b", "c"}) batch.images.push_back({id, "", 0});
  batch.pixels = pixels;
  batch.classes["truth"] = torch::zeros({3}, torch::kInt64);
  const auto made = make_maps(methods, work[0], batch, "truth", Context());
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].made[0].failure + made[0].made[2].failure, "");
  EXPECT_EQ(made[0].made[1].failure, "b diverges");
  EXPECT_TRUE(made[0].maps[1].isnan().all().item<bool>());
  EXPECT_TRUE(torch::equal(made[0].maps[2], batch.pixels[2].amax(0)));
  EXPECT_TRUE(torch::equal(made[1].maps, batch.pixels.mean(1)));
  for (const auto& one : made[1].made) EXPECT_EQ(one.failure, "");
}

TEST(Evaluate, SaysWhyWhereNothingIsLeft) {
  checks::LinearTarget target(8);
  EXPECT_THAT(checks::message_of(
                  [&] {
                    evaluate({target}, *slice(std::make_unique<TornWaves>(2), {1, 1, 1}), small_options(),
                             fresh_path("evaluate_empty"), Context());
                  },
                  1),
              HasSubstr("wave 1: torn"));
}

// A blurred method and its plain one share the plain maps, in either order, and a plain one that is there
// already stays as it is.
TEST(Evaluate, MethodsThatShareWorkAreMadeTogetherWithTheSameFigures) {
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
  for (const char* far : {"src=\"http", "href=", "<script src", "@import", "url(http", "fetch("})
    EXPECT_EQ(html.find(far), std::string::npos) << far;
  EXPECT_NE(html.find("data:image/png;base64,"), std::string::npos);
  for (const ShownImage& shown : result.shown) {
    const size_t begin = html.find("<h3 title=\"" + shown.id);
    ASSERT_NE(begin, std::string::npos) << shown.id;
    const std::string block = html.substr(begin, html.find("</section>", begin) - begin);
    EXPECT_THAT(block, HasSubstr(shown.class_name));
    EXPECT_THAT(block, HasSubstr(fmt::format("probability {:.3f}", shown.probability)));
    for (const auto& method : result.summary.methods) EXPECT_THAT(block, HasSubstr("<b>" + method + "</b>"));
    EXPECT_THAT(block, HasSubstr("<td>ins-del ↑</td>"));
  }
  for (const std::string& figure : {curves_svg(result, "predicted"), html}) {
    EXPECT_THAT(figure, HasSubstr(">pixels removed</text>"));
    EXPECT_THAT(figure, HasSubstr(">softmax probability of the class</text>"));
  }
  for (const char* file : {"results.csv", "per_image.csv", "curves.csv"}) {
    std::istringstream header(read_file((fs::path(folder) / file).string()));
    std::string line, column;
    std::getline(header, line);
    std::istringstream columns(line);
    std::set<std::string> seen;
    while (std::getline(columns, column, ','))
      EXPECT_TRUE(seen.insert(column).second) << file << ' ' << column;
  }
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
