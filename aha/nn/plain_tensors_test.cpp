#include "aha/nn/plain_tensors.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"

namespace aha {
namespace {

TEST(PlainWeight, IsContiguousFloat32OfTheShapeAskedFor) {
  const Tensor weight = torch::randn({3, 5}, torch::kFloat64).requires_grad_();
  const Tensor plain = plain_weight(weight.t(), {5, 3}, "weight");
  EXPECT_TRUE(plain.is_contiguous() && plain.scalar_type() == torch::kFloat32 && !plain.requires_grad());
  EXPECT_TRUE(torch::equal(plain, weight.detach().t().to(torch::kFloat32)));
  EXPECT_THROW(plain_weight(weight, {5, 3}, "weight"), Error);
}

}  // namespace
}  // namespace aha
