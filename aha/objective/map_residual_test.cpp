#include "aha/objective/map_residual.h"

#include <gtest/gtest.h>

#include "aha/tensor/torch.h"

#include "aha/base/error.h"
#include "aha/objective/objective_step.h"
#include "aha/testing/gradient.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

constexpr int kSide = 12;

// Central differences of a loss by each number.
Tensor differences(const MapResidual& residual, const std::function<double()>& loss, double step) {
  const torch::NoGradGuard no_grad;
  Tensor numbers = residual.numbers(), flat = numbers.view({-1});
  Tensor found = torch::zeros(flat.sizes(), torch::kFloat64);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double here = flat[i].item<double>();
    flat[i] = here + step;
    const double up = loss();
    flat[i] = here - step;
    const double down = loss();
    flat[i] = here;
    found[i] = (up - down) / (2 * step);
  }
  return found.view(numbers.sizes());
}

TEST(MapResidual, BeginsAsItsStartBitForBit) {
  const Tensor start = torch::randn({1, kSide, kSide});
  EXPECT_TRUE(torch::equal(MapResidual(start, {.grid = 5}).map().detach(), start));
}

TEST(MapResidual, HasTheDerivativeOfTheMap) {
  const Tensor start = torch::randn({1, kSide, kSide}, torch::kFloat64), weights = torch::randn_like(start);
  MapResidual residual(start, {.grid = 5});
  const auto loss = [&] { return (residual.map().sin() * weights).sum(); };
  loss().backward();
  const Tensor expected = differences(
      residual, [&] { return loss().item<double>(); }, 1e-5);
  EXPECT_LT(checks::relative(residual.numbers().grad(), expected), 1e-8);
}

// Probabilities are float32: a difference of two errs by 1e-7, over 2 h = 0.1 by 1e-6, and by h^2 of the
// third derivative, where the gradient is about 1e-3.
TEST(MapResidual, HasTheDerivativeOfTheWholeObjective) {
  checks::LinearToy target(kSide);
  const Tensor pixels = checks::pixels_of(checks::noise_images(1, kSide, 9));
  const ObjectiveImages images{pixels, torch::zeros({1}, torch::kInt64)};
  torch::manual_seed(3);
  for (const bool spread : {false, true}) {
    ObjectiveOptions options;
    options.steps = 4;
    options.grid_low = options.grid_high = 5;
    options.reference_choice = "all";
    options.spread_ks = spread;
    MapResidual residual(3 * torch::randn({1, kSide, kSide}), {.grid = 4});
    const auto drawn = draw_step(options, {1, 2, 0, 0, 1}, 1, kSide, kSide);
    EXPECT_EQ(drawn.ks.size(), spread ? 12u : 4u);
    const auto loss = [&] { return objective(target, residual.map(), images, drawn, options, {}).loss; };
    loss().backward();
    const Tensor expected = differences(
        residual, [&] { return loss().item<double>(); }, 0.05);
    EXPECT_LT(checks::relative(residual.numbers().grad().to(torch::kFloat64), expected), 1e-2);
  }
}

TEST(MapResidual, MovesByItsLearningRate) {
  const Tensor gradient = torch::linspace(-2, 3, 16);  // nowhere 0
  const auto moved = [&](const std::string& optimizer, int steps) {
    MapResidual residual(torch::zeros({1, 4, 4}), {.grid = 4, .lr = 0.5, .optimizer = optimizer});
    for (int i = 0; i < steps; ++i) {
      residual.zero_gradient();
      (residual.map().flatten() * gradient).sum().backward();
      residual.step();
    }
    return residual.numbers().detach().flatten().clone();
  };
  EXPECT_TRUE(torch::allclose(moved("sign", 1), -0.5 * gradient.sign()));
  EXPECT_TRUE(torch::allclose(moved("adam", 1), -0.5 * gradient.sign(), 1e-5));
  const Tensor plain = -0.5 * gradient / gradient.square().mean().sqrt();
  EXPECT_TRUE(torch::allclose(moved("gradient", 1), plain));
  EXPECT_TRUE(torch::allclose(moved("gradient", 2), 2 * plain));
  EXPECT_TRUE(torch::allclose(moved("momentum", 2), (1 + 1.9) * plain));
}

TEST(MapResidual, RefusesMoreNumbersThanPixels) {
  EXPECT_THROW(MapResidual(torch::zeros({1, 4, 4}), {.grid = 5}), Error);
  EXPECT_EQ(MapResidual(torch::zeros({1, 32, 32}), {}).numbers().size(2), 16);
  EXPECT_EQ(MapResidual(torch::zeros({1, 224, 224}), {}).numbers().size(2), 28);
  EXPECT_EQ(MapResidual(torch::zeros({1, 1, 1}), {}).numbers().size(2), 1);
}

}  // namespace
}  // namespace aha
