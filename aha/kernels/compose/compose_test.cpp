#include "aha/kernels/compose/compose.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::floats_of;
using checks::random_floats;

struct Scene {
  PatchGeometry geometry;
  int64_t regions;
  std::vector<float> image, reference;
  std::vector<int32_t> region;
  PatchSource source() const { return {geometry, image, reference, region, regions}; }
};

// Regions of cell x cell pixels, which need not fit the patches.
Scene random_scene(int height, int width, int patch, int cell) {
  Scene s;
  s.geometry = {height, width, patch, 2, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  const int across = (width + cell - 1) / cell;
  s.regions = int64_t{across} * ((height + cell - 1) / cell);
  s.image = random_floats(int64_t{3} * height * width, 1);
  s.reference = random_floats(int64_t{3} * height * width, 2);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) s.region.push_back(y / cell * across + x / cell);
  return s;
}

const Scene kScenes[] = {random_scene(4, 4, 2, 2), random_scene(32, 48, 16, 8), random_scene(28, 42, 14, 5),
                         random_scene(24, 16, 8, 16)};

class Compose : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  const KernelSet& reference = reference_kernels(GetParam()->format);
  Format format = GetParam()->format;
};

TEST_P(Compose, PatchRowsAreTheNormalisedBlend) {
  for (const Scene& scene : kScenes) {
    const PatchGeometry& g = scene.geometry;
    const PatchSource source = scene.source();
    const auto keep = random_floats(scene.regions, 3);
    Activations rows(format, 3 + g.tokens(), g.columns());
    compose(kernels, source, keep, 3, rows);
    const int64_t pixels = int64_t{g.height} * g.width;
    for (int64_t token = 0; token < g.tokens(); ++token)
      for (int64_t column = 0; column < g.columns(); ++column) {
        double expected = 0, size = 0;
        if (const int64_t patch = token - g.prefix_tokens; patch >= 0) {
          const int64_t across = g.width / g.patch, c = column / (g.patch * g.patch),
                        within = column % (g.patch * g.patch);
          const int64_t pixel = (patch / across * g.patch + within / g.patch) * g.width +
                                patch % across * g.patch + within % g.patch;
          const double shown = scene.image[c * pixels + pixel], hidden = scene.reference[c * pixels + pixel],
                       k = keep[scene.region[pixel]];
          expected = (shown * k + hidden * (1 - k) - g.mean[c]) / g.std[c];
          size = (std::abs(shown * k) + std::abs(hidden * k) + std::abs(hidden) + 1) / g.std[c];
        }
        ASSERT_NEAR(rows.at(3 + token, column), expected,
                    4 * checks::kF32Epsilon * size + checks::storing_epsilon(format) * std::abs(expected));
      }
  }
}

TEST_P(Compose, BackwardMatchesReference) {
  for (const Scene& scene : kScenes) {
    const PatchSource source = scene.source();
    const int64_t stride = source.padded_columns() + 1;
    const auto gradient = random_floats(scene.geometry.tokens() * stride, 4);
    std::vector<float> found(scene.regions), expected(scene.regions);
    compose_backward(kernels, source, gradient.data(), stride, found);
    compose_backward(reference, source, gradient.data(), stride, expected);
    const int64_t most =
        3 * scene.geometry.height * scene.geometry.width / std::max<int64_t>(1, scene.regions / 2);
    const double bound = checks::sum_bound(
        most, std::sqrt(static_cast<double>(most)) * 7);  // values of size 1 / std * sqrt 2 ~ 7
    EXPECT_TRUE(all_within(found, expected, [&](size_t) { return bound; }));
  }
}

TEST_P(Compose, BackwardIsTheTransposeOfForward) {
  // <gradient, compose(keep) - compose(0)> = <compose_backward(gradient), keep>, both linear in keep.
  if (format != Format::kF32) GTEST_SKIP() << "needs rows in float32";
  const Scene& scene = kScenes[1];
  const PatchSource source = scene.source();
  const auto keep = random_floats(scene.regions, 5);
  const int64_t stride = source.padded_columns(), tokens = scene.geometry.tokens();
  const auto gradient = random_floats(tokens * stride, 6);
  Activations with(format, tokens, scene.geometry.columns()),
      without(format, tokens, scene.geometry.columns());
  compose(kernels, source, keep, 0, with);
  compose(kernels, source, std::vector<float>(scene.regions), 0, without);
  double forward = 0, size = 0;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t c = 0; c < scene.geometry.columns(); ++c) {
      const double term = (double{with.at(t, c)} - without.at(t, c)) * gradient[t * stride + c];
      forward += term;
      size += term * term;
    }
  std::vector<float> d_keep(scene.regions);
  compose_backward(kernels, source, gradient.data(), stride, d_keep);
  double backward = 0;
  for (int64_t j = 0; j < scene.regions; ++j) backward += double{d_keep[j]} * keep[j];
  EXPECT_NEAR(forward, backward, checks::sum_bound(tokens * stride, std::sqrt(size) * 4));
}

TEST_P(Compose, RefusesWhatDoesNotFit) {
  Scene scene = random_scene(32, 32, 16, 8);
  Activations rows(format, scene.geometry.tokens(), scene.geometry.columns());
  EXPECT_THROW(compose(kernels, scene.source(), std::vector<float>(3), 0, rows), Error);
  EXPECT_THROW(compose(kernels, scene.source(), std::vector<float>(scene.regions), 1, rows), Error);
  scene.region[7] = static_cast<int32_t>(scene.regions);
  EXPECT_THROW(scene.source(), Error);
  scene.region[7] = 0;
  scene.geometry.patch = 15;
  EXPECT_THROW(scene.source(), Error);
}

INSTANTIATE_TEST_SUITE_P(Sets, Compose, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

}  // namespace
}  // namespace aha
