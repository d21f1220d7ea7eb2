// What holds for every image and map, on 10,000 random ones each.
#include <gtest/gtest.h>

#include "aha/base/rng.h"
#include "aha/metrics/catalog.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

constexpr int kSide = 5, kPixels = kSide * kSide, kTogether = 200, kRounds = 50,  // 10,000 images
    kSteps = 4;

struct RandomCase {
  Tensor pixels, reference, maps;  // (B, 3, H, W) twice, (B, H, W) without ties
  Tensor classes = torch::zeros({kTogether}, torch::kInt64);
};

RandomCase random_case(uint64_t seed, uint64_t round) {
  Rng rng(seed, round);
  RandomCase out{torch::empty({kTogether, 3, kSide, kSide}), torch::empty({kTogether, 3, kSide, kSide}),
                 torch::empty({kTogether, kSide, kSide})};
  for (const Tensor& values : {out.pixels, out.reference})
    for (int64_t i = 0; i < values.numel(); ++i)
      values.data_ptr<float>()[i] = static_cast<float>(rng.uniform());
  for (int64_t b = 0; b < kTogether; ++b) {
    const auto order = rng.permutation(kPixels);
    for (int64_t i = 0; i < kPixels; ++i)
      out.maps[b].data_ptr<float>()[i] = static_cast<float>(order[i]) - kPixels / 2;
  }
  return out;
}

std::vector<SweepCurves> swept(Classifier& target, const RandomCase& one, const Tensor& maps) {
  const Context context;
  const SweepEnds ends{logits_of(target, one.pixels, context), logits_of(target, one.reference, context)};
  return sweep(target, one.pixels, one.reference, hard_order(maps).order, one.classes, ends,
               {kSteps, AreaRule::kTrapezoid}, context);
}

TEST(Properties, InsertionOfAShareIsRemovalOfTheOtherPixels) {
  checks::LinearToy target(kSide);
  for (uint64_t round = 0; round < kRounds; ++round) {
    const RandomCase one = random_case(1, round);
    const auto curves = swept(target, one, one.maps);
    const Tensor order = hard_order(one.maps).order;
    for (int point = 0; point <= kSteps; ++point) {
      Tensor images = one.reference.clone();  // the top pixels are written into it
      const int64_t inserted = kPixels - removed_pixels(point, kSteps, kPixels);
      for (int64_t b = 0; b < kTogether; ++b)
        for (int64_t rank = 0; rank < inserted; ++rank) {
          const int64_t pixel = order.data_ptr<int64_t>()[b * kPixels + rank];
          for (int64_t c = 0; c < 3; ++c) {
            const int64_t at = (b * 3 + c) * kPixels + pixel;
            images.data_ptr<float>()[at] = one.pixels.data_ptr<float>()[at];
          }
        }
      const Tensor p = probabilities(target, images, Context());
      for (int64_t b = 0; b < kTogether; ++b)
        ASSERT_NEAR(curves[b].bottom[point], p.data_ptr<double>()[2 * b], 1e-6) << round << " " << b;
    }
  }
}

TEST(Properties, AReversedMapSwapsTheRoles) {
  checks::LinearToy target(kSide);
  for (uint64_t round = 0; round < kRounds; ++round) {
    const RandomCase one = random_case(2, round);
    const auto forth = swept(target, one, one.maps), back = swept(target, one, -one.maps);
    for (int64_t b = 0; b < kTogether; ++b) {
      ASSERT_EQ(forth[b].top, back[b].bottom);
      ASSERT_EQ(forth[b].bottom, back[b].top);
      ASSERT_EQ(forth[b].top_hits, back[b].bottom_hits);
      ASSERT_EQ(forth[b].bottom_hits, back[b].top_hits);
    }
  }
}

TEST(Properties, AMonotoneRescalingChangesNoRankMetric) {
  checks::LinearToy target(kSide);
  for (uint64_t round = 0; round < kRounds; ++round) {
    const RandomCase one = random_case(3, round);
    Rng rng(4, round);
    const double a = rng.uniform(0.1, 10), b = rng.uniform(-5, 5);
    const auto plain = swept(target, one, one.maps),
               other = swept(target, one, round % 2 ? a * one.maps + b : torch::exp(0.1 * a * one.maps));
    for (int64_t i = 0; i < kTogether; ++i)
      for (const char* name : {"deletion", "insertion", "positive", "negative"})
        ASSERT_EQ(value_of_curves(metric_record(name), plain[i], AreaRule::kTrapezoid),
                  value_of_curves(metric_record(name), other[i], AreaRule::kTrapezoid))
            << name;
  }
}

TEST(Properties, TheTrueOrderOfALinearModelIsTheBest) {
  checks::LinearToy target(kSide);
  for (uint64_t round = 0; round < kRounds; ++round) {
    RandomCase one = random_case(5, round);
    one.reference.zero_();
    const auto best = swept(target, one, target.importance(one.pixels)), any = swept(target, one, one.maps);
    for (int64_t b = 0; b < kTogether; ++b)
      for (int point = 0; point <= kSteps; ++point) {
        ASSERT_LE(best[b].top[point], any[b].top[point] + 1e-6);
        ASSERT_GE(best[b].bottom[point], any[b].bottom[point] - 1e-6);
      }
  }
}

}  // namespace
}  // namespace aha
