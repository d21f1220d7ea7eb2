#include "aha/evaluate/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/evaluate/evaluate.h"
#include "aha/evaluate/selection.h"
#include "aha/metrics/catalog.h"
#include "aha/testing/checks.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

using checks::fresh_path;
using ::testing::HasSubstr;

TEST(Protocol, NamedOnesAreWhatTheySay) {
  const Protocol paper = protocol_named("paper"), equations = protocol_named("equations"),
                 rise = protocol_named("rise"), mda = protocol_named("mda"),
                 chefer = protocol_named("chefer");
  EXPECT_EQ(sweep_options(paper).rule, AreaRule::kAuc10);
  EXPECT_EQ(paper.steps, 10);
  EXPECT_EQ(paper.references, (std::vector<std::string>{"black", "mean", "blur"}));
  EXPECT_FALSE(paper.selects());
  EXPECT_EQ(sweep_options(equations).rule, AreaRule::kMeanK);
  EXPECT_EQ(sweep_options(rise).rule, AreaRule::kTrapezoid);
  EXPECT_EQ(references_of(rise, false), std::vector<std::string>{"gray"});
  EXPECT_EQ(references_of(rise, true), std::vector<std::string>{"blur"});
  EXPECT_EQ(references_of(paper, true), paper.references);
  EXPECT_EQ(sweep_options(mda).rule, AreaRule::kNormalized);
  EXPECT_TRUE(mda.selects());
  EXPECT_EQ(sweep_options(chefer).rule, AreaRule::kInner);
  EXPECT_EQ(chefer.references, std::vector<std::string>{"black"});
  for (const auto& name : protocol_names())
    EXPECT_NO_THROW(metrics_from_names(protocol_named(name).metrics)) << name;
  EXPECT_THROW(protocol_named("papre"), Error);
}

// Rows of the paper's protocol are found again by these facts: a new setting must not be among them.
TEST(Protocol, StoredRowsOfThePaperStayWhatTheyAre) {
  EXPECT_EQ(json_of_rows(protocol_named("paper")).dump(),
            R"({"area":"auc10","blur":"gaussian","blur-kernel":0,"blur-sigma":0.0,"mean-color":[],)"
            R"("references":["black","mean","blur"],"steps":10,"ties":"index"})");
  EXPECT_EQ(json_from_references(with_mean_color(protocol_named("paper").reference, {0.5, 0.25, 0}),
                                 {"black", "mean", "blur"})
                .dump(),
            R"({"black":[0,0,0],"blur":{"blur":"gaussian","blur-kernel":0,"blur-sigma":0.0,)"
            R"("rule":"gaussian, borders reflected; sigma 0 = 25/224 of the shorter side, )"
            R"(kernel 0 = 4 sigma + 1 taps"},"mean":[0.5,0.25,0.0]})");
}

TEST(Protocol, AnySettingCanBeChangedForOneCall) {
  const Protocol spec = protocol_named("mda:steps=16:most-per-class=2:insertion-references=blur,gray");
  EXPECT_EQ(spec.steps, 16);
  EXPECT_EQ(spec.most_per_class, 2);
  EXPECT_EQ(spec.insertion_references, (std::vector<std::string>{"blur", "gray"}));
  EXPECT_EQ(spec.least_probability, 0.6) << "the others stay";
  EXPECT_EQ(spec.name, "mda:steps=16:most-per-class=2:insertion-references=blur,gray");
  EXPECT_THROW(protocol_named("mda:stepz=3"), Error);
  EXPECT_THROW(protocol_named("paper:steps=12"), Error) << "auc10 has ten";

  ProtocolChanges changes;
  changes.steps = 14, changes.area = "mean_k", changes.ties = "jitter", changes.blur = "gaussian";
  changes.blur_kernel = 21, changes.blur_sigma = 0;
  const Protocol other = changed(protocol_named("rise"), changes);
  EXPECT_EQ(other.steps, 14);
  EXPECT_EQ(sweep_options(other).rule, AreaRule::kMeanK);
  EXPECT_EQ(other.ties, "jitter");
  EXPECT_EQ(other.reference.blur, "gaussian");
  EXPECT_EQ(other.reference.kernel_px, 21);
  EXPECT_EQ(other.reference.sigma_px, 0) << "0 says: by the size, not: as the protocol says";
  EXPECT_EQ(other.deletion_references, std::vector<std::string>{"gray"});
  changes = {};
  changes.references = {"black"};
  EXPECT_TRUE(changed(protocol_named("rise"), changes).deletion_references.empty())
      << "the same references for all";
  changes = {};
  changes.deletion_references = {"gray"};
  EXPECT_EQ(changed(protocol_named("paper"), changes).references,
            (std::vector<std::string>{"black", "mean", "blur", "gray"}));
}

TEST(Protocol, RefusesWhatItDoesNotKnow) {
  const auto folder = fresh_path("evaluate_protocol");
  make_directories(folder);
  const auto refuse = [&](const std::string& text) {
    const auto path = (std::filesystem::path(folder) / "mine.toml").string();
    write_file_atomically(path, text);
    EXPECT_THROW(protocol_from_file(path), Error) << text;
  };
  refuse("stepz = 3\n");
  refuse("steps = 1\n");
  refuse("steps = 12\narea = \"auc10\"\n");
  refuse("references = []\n");
  refuse("references = [\"white\"]\n");
  refuse("references = [\"black\"]\ndeletion-references = [\"gray\"]\n");
  refuse("steps = = 3\n");
}

// The paper's figure of ViT-B/16, predicted class: plotted curves, most important removed first and least
// important removed first, at 0..90 % removed, and the areas its table prints. Both are rounded to 4 digits.
struct PublishedCurves {
  const char* method;
  std::vector<double> top, bottom;
  double deletion, insertion;
};
const std::vector<PublishedCurves> kPublished = {
    {"Grad-CAM",
     {.8427, .5607, .4485, .3716, .3137, .2654, .2136, .1543, .0898, .0380},
     {.8427, .8192, .7834, .7262, .6466, .5474, .4414, .3302, .2164, .0993},
     .2858,
     .4982},
    {"IG",
     {.8427, .5094, .3423, .2283, .1480, .0917, .0545, .0326, .0210, .0166},
     {.8427, .8032, .7801, .7494, .7074, .6490, .5709, .4635, .3238, .1503},
     .1857,
     .5544},
    {"Trans-Att.",
     {.8427, .4716, .2971, .1864, .1147, .0689, .0416, .0260, .0187, .0162},
     {.8427, .8068, .7877, .7640, .7311, .6848, .6187, .5244, .3919, .2040},
     .1654,
     .5833},
    {"Bi-Att.",
     {.8427, .4597, .2834, .1745, .1053, .0640, .0392, .0257, .0190, .0166},
     {.8427, .8086, .7922, .7712, .7419, .7002, .6392, .5498, .4198, .2281},
     .1600,
     .5958},
    {"TIS",
     {.8427, .4109, .2328, .1332, .0797, .0512, .0355, .0263, .0206, .0173},
     {.8427, .8420, .8348, .8211, .7996, .7653, .7079, .6142, .4611, .2275},
     .1420,
     .6381},
    {"ViT-CX",
     {.8427, .5010, .3136, .1962, .1231, .0779, .0504, .0339, .0239, .0182},
     {.8427, .8031, .7814, .7551, .7216, .6749, .6082, .5083, .3600, .1606},
     .1750,
     .5714},
    {"MDA",
     {.8427, .4677, .2595, .1514, .0942, .0610, .0411, .0293, .0218, .0179},
     {.8427, .8176, .8061, .7918, .7698, .7328, .6711, .5735, .4216, .2132},
     .1556,
     .6112},
    {"LeGrad",
     {.8427, .4835, .3028, .1859, .1126, .0669, .0405, .0259, .0184, .0159},
     {.8427, .8062, .7857, .7593, .7231, .6715, .5965, .4893, .3372, .1507},
     .1666,
     .5666},
    {"AHA",
     {.8427, .4440, .2357, .1206, .0643, .0370, .0230, .0160, .0131, .0119},
     {.8427, .8139, .7977, .7781, .7522, .7156, .6617, .5790, .4562, .2729},
     .1381,
     .6112},
    {"AHA T=3",
     {.8427, .3966, .1912, .0911, .0461, .0261, .0165, .0116, .0095, .0087},
     {.8427, .8400, .8338, .8211, .8006, .7681, .7164, .6318, .5014, .3018},
     .1215,
     .6485},
};

TEST(Protocol, ThePapersCurvesGiveItsPrintedAreas) {
  const AreaRule rule = sweep_options(protocol_named("paper")).rule;
  for (const auto& one : kPublished) {
    EXPECT_NEAR(deletion_area(one.top, rule), one.deletion, 7e-5) << one.method;
    EXPECT_NEAR(insertion_area(one.bottom, rule), one.insertion, 7e-5) << one.method;
    EXPECT_GT(std::abs(trapezoid(one.bottom) - one.insertion), 0.04) << "another rule does not fit";
  }
}

// Accuracies at 0..90 %: the nine inner points have 0.353125 by MDA's rule.
TEST(Area, InnerLeavesOutTheCleanImage) {
  const std::vector<double> hits = {1, .8, .7, .55, .4, .3, .2, .15, .1, .05};
  EXPECT_EQ(points_of(AreaRule::kInner, 10), 10);
  EXPECT_NEAR(deletion_area(hits, AreaRule::kInner), 0.353125, 1e-12);
  EXPECT_NEAR(insertion_area(hits, AreaRule::kInner), 0.353125, 1e-12);
}

// The published vectors of MDA's normalized curves, as they lie in a sweep: clean image first.
TEST(Area, NormalizedIsMdasRise) {
  const std::vector<double> deletion = {.90, .50, .55, .20, .12, .10},
                            inserted = {.05, .45, .40, .80, .85, .90},
                            bottom(inserted.rbegin(), inserted.rend());
  EXPECT_NEAR(deletion_area(deletion, AreaRule::kNormalized), 0.33, 1e-5);
  EXPECT_NEAR(insertion_area(bottom, AreaRule::kNormalized), 0.652941, 1e-5);
  EXPECT_EQ(deletion_area(std::vector<double>(6, 0.4), AreaRule::kNormalized), 0.5);
  EXPECT_EQ(rule_of_hits(AreaRule::kNormalized), AreaRule::kTrapezoid);
  EXPECT_EQ(rule_of_hits(AreaRule::kInner), AreaRule::kInner);
}

checks::MemoryDataset bright_and_dark(int count) {
  checks::MemoryDataset data;
  for (int i = 0; i < count; ++i) {
    data.images.push_back(Image(8, 8));
    data.labels.push_back(i % 4);
    for (size_t k = 0; k < data.images[i].rgb.size(); ++k)
      data.images[i].rgb[k] = static_cast<uint8_t>(127 + 120 * std::sin(0.7 * double(k) + 1.9 * i));
  }
  return data;
}

struct SeenImage {
  int64_t predicted = 0;
  double probability = 0;
};
std::vector<SeenImage> seen(Classifier& target, const Dataset& data) {
  std::vector<SeenImage> out;
  for (int64_t i = 0; i < data.size(); ++i) {
    const Tensor p = probabilities(target, input_from_image(data.image(i), target.info().input).unsqueeze(0),
                                   Context())[0];
    out.push_back({p.argmax().item<int64_t>(), p.max().item<double>()});
  }
  return out;
}

TEST(Selection, TakesTheFirstImagesThatFit) {
  checks::LinearTarget target(8);
  const auto data = bright_and_dark(40);
  const auto answers = seen(target, data);
  const auto chosen = [&](const Protocol& protocol) {
    return select_images(protocol, {}, target, data, target.info().input, Context());
  };
  EXPECT_EQ(chosen(protocol_named("paper")).chosen.size(), 40u);
  Protocol protocol = protocol_named("paper");
  protocol.correct_only = true;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 40; ++i)
    if (answers[i].predicted == i % 4) expected.push_back(i);
  ASSERT_GT(expected.size(), 2u);
  EXPECT_EQ(chosen(protocol).chosen, expected);
  EXPECT_EQ(chosen(protocol).left_out.size(), 40 - expected.size());
  protocol.most_images = 2;
  expected.resize(2);
  EXPECT_EQ(chosen(protocol).chosen, expected);

  protocol = protocol_named("paper");
  protocol.most_per_class = 1;
  std::set<int64_t> classes;
  for (const auto& one : answers) classes.insert(one.predicted);
  EXPECT_EQ(chosen(protocol).chosen.size(), classes.size());
  protocol.most_per_class = 0;
  protocol.least_probability = answers[7].probability;
  for (const int64_t i : chosen(protocol).chosen) EXPECT_GE(answers[i].probability, answers[7].probability);
  EXPECT_THAT(chosen(protocol).left_out.begin()->second, HasSubstr("probability below"));
}

TEST(Selection, LeavesOutImagesThatNoBlurHides) {
  checks::LinearTarget target(8);
  const auto data = bright_and_dark(12);
  Protocol protocol = protocol_named("mda:correct-only=false:least-probability=0:most-per-class=0");
  ReferenceOptions look = protocol.reference;
  look.gray = {0.5, 0.5, 0.5};
  look.hidden_probability = 1;
  EXPECT_EQ(select_images(protocol, look, target, data, target.info().input, Context()).chosen.size(), 12u);
  look.hidden_probability = 0;
  const auto none = select_images(protocol, look, target, data, target.info().input, Context());
  EXPECT_TRUE(none.chosen.empty());
  EXPECT_EQ(none.left_out.begin()->second, "no blur hides the class");
}

// Deletion on gray, insertion on the blur; images that are not chosen are no failures.
TEST(Evaluate, DeletionAndInsertionMayHaveReferencesOfTheirOwn) {
  checks::LinearTarget target(8);
  const auto data = bright_and_dark(12);
  EvaluateOptions options;
  options.methods = {"random", "gradient"};
  options.timing_runs = options.images = 0;
  options.protocol = "mda:steps=4:correct-only=false:least-probability=0:most-per-class=2:blur-hidden=1";
  const auto mda = evaluate({target}, data, options, fresh_path("evaluate_mda"), Context());
  EXPECT_TRUE(mda.summary.failures.empty());
  EXPECT_EQ(mda.summary.asked, 12);
  EXPECT_LT(mda.summary.images.size(), 12u);
  EXPECT_EQ(mda.summary.left_out.at("not chosen: more than 2 of a class"),
            12 - std::ssize(mda.summary.images));
  EXPECT_EQ(mda.settings["protocol"]["most-per-class"], 2);
  EXPECT_EQ(mda.settings["references"]["gray"], nlohmann::json(target.info().input.mean));

  options.protocol = "rise:steps=4:area=trapezoid";
  const auto rise = evaluate({target}, data, options, fresh_path("evaluate_rise"), Context());
  const auto& row = rise.summary.row("gradient", "predicted").metrics;
  EXPECT_EQ(row.at("deletion").per_reference.size(), 1u);
  EXPECT_EQ(row.at("deletion").value.mean, row.at("deletion").per_reference.at("gray"));
  EXPECT_EQ(row.at("insertion").value.mean, row.at("insertion").per_reference.at("blur"));
  EXPECT_NEAR(row.at("ins-del").value.mean, row.at("insertion").value.mean - row.at("deletion").value.mean,
              1e-12);
}

}  // namespace
}  // namespace aha
