// Metrics that explain again, with targets and methods whose answers are known.
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/metrics/catalog.h"
#include "aha/metrics/map_similarity.h"
#include "aha/networks/convnext.h"
#include "aha/networks/randomized.h"
#include "aha/networks/vit.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

// The logit of class c is the weighted mean of the image's channels, c + 1 times; nothing saturates.
class Weighted : public Classifier {
 public:
  explicit Weighted(int size, int classes = 3) : weights(torch::empty({size, size})) {
    info_ = checks::plain_info("weighted", size);
    info_.classes = classes;
    checks::fill_with_wave(weights, 2, 1);
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    const Tensor sum = (pixels.mean(1) * weights).sum({1, 2});  // (B)
    return sum.unsqueeze(1) * torch::arange(1, info_.classes + 1);
  }
  Tensor weights;  // (H, W)
};

struct Asked {
  MetricImages images;
  Tensor maps;
};

Asked two_images(Classifier& target, Tensor pixels, Tensor maps) {
  Asked out;
  out.images.pixels = std::move(pixels);
  const int64_t B = out.images.pixels.size(0);
  out.images.classes = torch::zeros({B}, torch::kInt64);
  for (int64_t b = 0; b < B; ++b) out.images.streams.push_back(static_cast<uint64_t>(b) + 7);
  out.images.clean = logits_of(target, out.images.pixels, Context());
  out.images.references["black"] = torch::zeros_like(out.images.pixels);
  out.images.replaced["black"] = logits_of(target, out.images.references["black"], Context());
  out.images.annotations.resize(B);
  out.maps = std::move(maps);
  return out;
}

std::vector<MetricValues> measured(const std::string& spec, Classifier& target, const Asked& asked,
                                   const ExplainAgain& explain, ScoreKind score = ScoreKind::kProbability) {
  const Context context;
  const auto groups = measured_metrics({spec});
  ScoreQueue questions(target, asked.maps.size(1), asked.maps.size(2), context);
  const auto finish =
      groups.at(0).metric->measure({target, asked.images, asked.maps, questions, score, explain, context});
  questions.flush();
  return finish();
}

const ExplainAgain kNotAsked = [](Classifier*, const Tensor&, const Tensor&,
                                  const std::vector<uint64_t>&) -> Tensor { throw work_error("not asked"); };

TEST(Spearman, CorrelatesRanksAndSharesThemAmongEquals) {
  const Tensor a = torch::tensor({1., 2., 3., 4.}).view({2, 2});
  EXPECT_NEAR(spearman(a, a.exp()), 1, 1e-12);
  EXPECT_NEAR(spearman(a, -a), -1, 1e-12);
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
  EXPECT_NEAR(spearman(torch::tensor({0., 5., 5., 9.}).view({2, 2}), a), 4.5 / std::sqrt(22.5), 1e-12);
  EXPECT_EQ(spearman(a, torch::ones({2, 2})), 0);
  EXPECT_THROW(spearman(a, torch::ones({3, 2})), Error);
}

TEST(Infidelity, IsZeroForTheContributionsOfALinearTarget) {
  Weighted target(8);
  const Asked exact = two_images(target, torch::ones({2, 3, 8, 8}), target.weights.repeat({2, 1, 1}));
  for (const std::string options :
       {"", ":normalize=false", ":perturb=noise", ":perturb=noise:normalize=false"})
    for (const auto& one : measured("infidelity" + options, target, exact, kNotAsked, ScoreKind::kLogit)) {
      ASSERT_EQ(one.values.size(), 1u) << options;
      EXPECT_NEAR(one.values.begin()->second, 0, 1e-9) << options;
    }
  Asked scaled = exact;
  scaled.maps = 3 * exact.maps;
  EXPECT_NEAR(
      measured("infidelity", target, scaled, kNotAsked, ScoreKind::kLogit)[1].values["infidelity@black"], 0,
      1e-9)
      << "the scale of a map is its own";
  // Without a scale of its own the error is that of 2 f: four times the mean square of the change itself.
  Asked nothing = exact;
  nothing.maps = torch::zeros_like(exact.maps);
  const std::string plain = "infidelity:normalize=false";
  const double change =
      measured(plain, target, nothing, kNotAsked, ScoreKind::kLogit)[0].values["infidelity@black"];
  EXPECT_GT(change, 0.01);
  EXPECT_NEAR(measured(plain, target, scaled, kNotAsked, ScoreKind::kLogit)[0].values["infidelity@black"],
              4 * change, 1e-5 * change);
}

TEST(SensitivityMax, IsTheLargestRelativeChange) {
  Weighted target(4);
  const Asked asked = two_images(target, torch::full({2, 3, 4, 4}, 0.99), torch::rand({2, 4, 4}) + 1);
  int calls = 0;
  const ExplainAgain grows = [&](Classifier* other, const Tensor& pixels, const Tensor& classes,
                                 const std::vector<uint64_t>& streams) {
    EXPECT_EQ(other, nullptr);
    EXPECT_TRUE(torch::equal(classes, asked.images.classes));
    EXPECT_EQ(streams, asked.images.streams);
    EXPECT_LE(pixels.max().item<double>(), 1);
    const double furthest = (pixels - asked.images.pixels).abs().max().item<double>();
    EXPECT_GT(furthest, 0.05);
    EXPECT_LE(furthest, 0.1 + 1e-6);
    EXPECT_FALSE(torch::equal(pixels[0], pixels[1]));
    return asked.maps * (1 + 0.1 * (++calls == 3 ? -5 : calls));
  };
  const auto found = measured("sensitivity-max:samples=4:radius=0.1", target, asked, grows);
  EXPECT_EQ(calls, 4);
  for (auto one : found) EXPECT_NEAR(one.values["sensitivity-max"], 0.5, 1e-6);
}

TEST(ClassSensitivity, ComparesWithTheNextOrTheLeastProbableClass) {
  Weighted target(4, 5);
  Asked asked = two_images(target, torch::rand({2, 3, 4, 4}), torch::rand({2, 4, 4}));
  asked.images.clean = torch::tensor({{5., 1., 4., 2., 3.}, {1., 2., 3., 4., 5.}}).to(torch::kFloat64);
  Tensor seen;
  const ExplainAgain flips = [&](Classifier*, const Tensor&, const Tensor& classes, const auto&) {
    seen = classes;
    return -asked.maps;
  };
  for (auto one : measured("class-sensitivity", target, asked, flips))
    EXPECT_NEAR(one.values["class-sensitivity"], -1, 1e-12);
  EXPECT_TRUE(torch::equal(seen, torch::tensor({int64_t{2}, int64_t{4}})));
  measured("class-sensitivity:other=least", target, asked, flips);
  EXPECT_TRUE(torch::equal(seen, torch::tensor({int64_t{1}, int64_t{1}}))) << "never the explained class";
  const ExplainAgain blind = [&](Classifier*, const auto&, const auto&, const auto&) { return asked.maps; };
  for (auto one : measured("class-sensitivity", target, asked, blind))
    EXPECT_NEAR(one.values["class-sensitivity"], 1, 1e-12);
}

// Class c is seen as soon as pixel c is.
class SeesPixels : public Classifier {
 public:
  SeesPixels() {
    info_ = checks::plain_info("sees pixels", 8);
    info_.classes = 12;
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    return 9 * pixels.select(1, 0).flatten(1).slice(1, 0, 12);
  }
};

TEST(RandomClassLeakage, IsHighForMapsThatComposeTheClass) {
  SeesPixels target;
  Tensor pixels = torch::full({2, 3, 8, 8}, 0.5);
  pixels.slice(2, 0, 1).slice(3, 0, 5) = 1;  // classes 0..4 are the most probable ones
  const Asked asked = two_images(target, pixels, torch::rand({2, 8, 8}));
  const auto map_of = [](const Tensor& classes, bool composes) {
    Tensor maps = torch::arange(64.).flip(0).view({1, 8, 8}).repeat({2, 1, 1}) / 64;
    for (int64_t b = 0; b < 2; ++b) {
      EXPECT_GE(classes[b].item<int64_t>(), 5) << "a class that is not in the image";
      maps[b].slice(0, 0, 2).zero_();  // the pixels of all classes
      if (composes) maps[b].view({64})[classes[b].item<int64_t>()] = 2;
    }
    return maps;
  };
  for (const bool composes : {true, false}) {
    const ExplainAgain explain = [&](Classifier*, const Tensor&, const Tensor& classes, const auto&) {
      return map_of(classes, composes);
    };
    for (auto one : measured("random-class-leakage", target, asked, explain)) {
      const double found = one.values["random-class-leakage@black"];
      EXPECT_EQ(found > 0.3, composes) << found;
    }
  }
}

template <class Holder>
void expect_random_from_the_top(const Holder& network, int groups) {
  NetworkClassifier target(network, checks::plain_info("tiny", 16), Precision::kF32);
  ASSERT_EQ(weight_groups(target), groups);
  const Tensor pixels = torch::rand({2, 3, 16, 16}), before = target.logits(pixels);
  const Context context;
  std::vector<size_t> changed;
  for (int count = 1; count <= groups; ++count) {
    const auto other = randomized(target, count, 3, context);
    EXPECT_FALSE(torch::allclose(other->logits(pixels), before)) << count;
    EXPECT_TRUE(torch::equal(other->logits(pixels), randomized(target, count, 3, context)->logits(pixels)));
    EXPECT_FALSE(torch::equal(other->logits(pixels), randomized(target, count, 4, context)->logits(pixels)));
    auto& module = dynamic_cast<NetworkClassifier&>(*other).shared_network()->module();
    size_t different = 0;
    for (const auto& item : module.named_parameters())
      different += !torch::equal(item.value(), network->named_parameters()[item.key()]);
    changed.push_back(different);
  }
  EXPECT_TRUE(torch::equal(target.logits(pixels), before)) << "the target stays as it is";
  for (int count = 1; count < groups; ++count) EXPECT_GT(changed[count], changed[count - 1]);
  EXPECT_THROW(randomized(target, groups + 1, 3, context), Error);
}

TEST(Randomized, DrawsGroupsAnewFromTheTopDown) {
  expect_random_from_the_top(checks::tiny_vit(), 5);       // stem, three blocks, head
  expect_random_from_the_top(checks::tiny_convnext(), 6);  // stem, one and two blocks, downsampling, head
  checks::LinearTarget black_box;
  EXPECT_EQ(weight_groups(black_box), 0);
  EXPECT_THROW(randomized(black_box, 1, 3, Context()), Error);
}

TEST(ParameterRandomization, ExplainsEachStageAndTellsMapsThatNeverLook) {
  NetworkClassifier target(checks::tiny_vit(), checks::plain_info("tiny", 16), Precision::kF32);
  const Asked asked = two_images(target, torch::rand({2, 3, 16, 16}), torch::rand({2, 16, 16}));
  std::vector<Classifier*> targets;
  const ExplainAgain looks = [&](Classifier* other, const Tensor&, const Tensor&, const auto&) {
    targets.push_back(other);
    return targets.size() == 1 ? asked.maps : -asked.maps;
  };
  auto found = measured("parameter-randomization:stages=3", target, asked, looks);
  EXPECT_EQ(targets.size(), 3u);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), nullptr), 0);
  for (auto& one : found) {
    EXPECT_NEAR(one.values["parameter-randomization"], -1.0 / 3, 1e-12);
    EXPECT_EQ(one.values["randomization-unchanged"], 0);
  }
  const ExplainAgain blind = [&](Classifier*, const auto&, const auto&, const auto&) { return asked.maps; };
  for (auto& one : measured("parameter-randomization", target, asked, blind)) {
    EXPECT_NEAR(one.values["parameter-randomization"], 1, 1e-12);
    EXPECT_EQ(one.values["randomization-unchanged"], 1);
  }
  // The smooth form explains noisy copies, of the target as it is too.
  int of_target = 0, of_others = 0;
  const ExplainAgain counts = [&](Classifier* other, const Tensor& pixels, const Tensor&, const auto&) {
    (other ? of_others : of_target) += 1;
    EXPECT_FALSE(torch::equal(pixels, asked.images.pixels));
    return asked.maps;
  };
  measured("parameter-randomization:stages=2:samples=4", target, asked, counts);
  EXPECT_EQ(of_target, 4);
  EXPECT_EQ(of_others, 8);

  checks::LinearTarget black_box(16);
  const Asked other = two_images(black_box, asked.images.pixels, asked.maps);
  for (auto& one : measured("parameter-randomization", black_box, other, blind)) {
    EXPECT_TRUE(one.values.empty());
    EXPECT_NE(one.missing.find("weights"), std::string::npos);
  }
}

TEST(ModelGap, IsTheInsDelThatTheOtherTargetsMapLacks) {
  NetworkClassifier target(checks::tiny_vit(), checks::plain_info("tiny", 16), Precision::kF32);
  const Asked asked = two_images(target, torch::rand({2, 3, 16, 16}), torch::rand({2, 16, 16}));
  const ExplainAgain blind = [&](Classifier*, const auto&, const auto&, const auto&) { return asked.maps; };
  for (auto& one : measured("model-gap", target, asked, blind))
    EXPECT_NEAR(one.values["model-gap@black"], 0, 1e-12) << "a map that never looks at the target";
  const ExplainAgain flips = [&](Classifier* other, const auto&, const auto&, const auto&) {
    EXPECT_NE(other, nullptr);
    return -asked.maps;
  };
  const auto area = [&](const Tensor& maps, int64_t b) {
    const Context context;
    const SweepEnds ends{asked.images.clean, asked.images.replaced.at("black")};
    const auto order = maps.flatten(1).argsort(1, /*descending=*/true);
    const SweepCurves curves = sweep(target, asked.images.pixels, asked.images.references.at("black"), order,
                                     asked.images.classes, ends, {}, context)[b];
    return insertion_area(curves.bottom, AreaRule::kAuc10) - deletion_area(curves.top, AreaRule::kAuc10);
  };
  const auto found = measured("model-gap", target, asked, flips);
  for (int64_t b = 0; b < 2; ++b)
    EXPECT_NEAR(found[b].values.at("model-gap@black"), area(asked.maps, b) - area(-asked.maps, b), 1e-9);
  const Asked other = asked;
  EXPECT_THROW(measured("model-gap:foreign=no-such-model", target, other, blind), Error);
}

}  // namespace
}  // namespace aha
