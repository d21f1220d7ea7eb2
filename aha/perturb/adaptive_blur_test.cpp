#include "aha/perturb/adaptive_blur.h"

#include <gtest/gtest.h>

#include "aha/perturb/reference.h"

namespace aha {
namespace {

constexpr std::array<double, 3> kGray = {0.5, 0.5, 0.5};

TEST(AdaptiveBlur, StopsAtTheFirstKernelThatIsStrongEnough) {
  const Tensor image = torch::rand({3, 224, 224});
  int asked = 0;
  const auto found = adaptive_blur(image, kGray, [&](const Tensor&) { return ++asked < 4 ? 0.5 : 0.01; });
  EXPECT_TRUE(found.found);
  EXPECT_EQ(found.kernel_px, 37);
  EXPECT_EQ(found.asked, 4);
  EXPECT_EQ(found.probability, 0.01);
}

TEST(AdaptiveBlur, EndsOneStepBehindTheLastKernel) {
  const auto found = adaptive_blur(torch::rand({3, 224, 224}), kGray, [](const Tensor&) { return 0.5; });
  EXPECT_FALSE(found.found);
  EXPECT_EQ(found.kernel_px, 103);
  EXPECT_EQ(found.asked, 37);
}

TEST(AdaptiveBlur, SmallImagesGetSmallKernels) {
  const auto of_side = [](int side, double p) {
    return adaptive_blur(torch::rand({3, side, side}), kGray, [&](const Tensor&) { return p; }).kernel_px;
  };
  EXPECT_EQ(of_side(32, 0), 5);
  EXPECT_EQ(of_side(32, 1), 17);  // 15 is the last
  EXPECT_EQ(of_side(8, 0), 3);
}

// Zero padding of the normalized image, a kernel as in the published weights (1/31 to four digits).
TEST(AdaptiveBlur, IsTheBoxOfTheNormalizedImageWithZerosAround) {
  const Tensor image = torch::rand({3, 64, 64}, torch::kFloat64);
  AdaptiveBlurOptions options;
  options.first_px = 112 - 1;  // 31.7 at 64 pixels -> 31
  const auto found = adaptive_blur(
      image, kGray, [](const Tensor&) { return 0; }, options);
  ASSERT_EQ(found.kernel_px, 31);
  const Tensor line = torch::tensor(reflected_impulse_weights(31, 31), torch::kFloat64);
  const Tensor kernel = line.unsqueeze(1).mul(line).expand({3, 1, 31, 31}).contiguous();
  const Tensor expected = torch::conv2d(((image - 0.5) / 0.5).unsqueeze(0), kernel, Tensor(), 1,
                                        at::IntArrayRef({15, 15}), 1, 3)[0] *
                              0.5 +
                          0.5;
  EXPECT_LT((found.image - expected).abs().max().item<double>(), 1e-12);
  const Tensor box = torch::full({3, 1, 31, 31}, 1.0 / (31 * 31), torch::kFloat64);
  const Tensor boxed =
      torch::conv2d((image - 0.5).unsqueeze(0), box, Tensor(), 1, at::IntArrayRef({15, 15}), 1, 3)[0] + 0.5;
  EXPECT_LT((found.image - boxed).abs().max().item<double>(), 1e-4);
}

}  // namespace
}  // namespace aha
