#include "aha/ranking/hard_order.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"

namespace aha {
namespace {

std::vector<int64_t> first_row(const Tensor& order) {
  return {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.size(1)};
}

TEST(HardOrder, SortsTheMostImportantFirst) {
  const Tensor map =
      torch::tensor({1., 5., 2., 8., 9., 4., 16., 3., 7., 12., 6., 13., 10., 11., 15., 14.}).view({1, 4, 4});
  const HardOrder hard = hard_order(map);
  EXPECT_EQ(first_row(hard.order),
            (std::vector<int64_t>{6, 14, 15, 11, 9, 13, 12, 4, 3, 8, 10, 1, 5, 7, 2, 0}));
  EXPECT_EQ(hard.tie_rate.item<double>(), 0);
}

TEST(HardOrder, BreaksTiesByIndexOrReverseAndReportsThem) {
  const Tensor map = torch::tensor({{0.f, 2.f, -0.f, 2.f, -1.f}});
  EXPECT_EQ(first_row(hard_order(map).order), (std::vector<int64_t>{1, 3, 0, 2, 4}));
  EXPECT_EQ(first_row(hard_order(map, TieRule::kReverse).order), (std::vector<int64_t>{3, 1, 2, 0, 4}));
  EXPECT_DOUBLE_EQ(hard_order(map).tie_rate.item<double>(), 0.8);
}

TEST(HardOrder, EqualsTorchsStableSortOnAnyValues) {
  torch::manual_seed(1);
  const Tensor map =
      torch::cat(
          {torch::randn({3, 500}), torch::randint(-3, 3, {3, 500}) * 1e-40, torch::randn({3, 50}) * 1e38}, 1)
          .relu();
  const auto [values, order] = torch::sort(map, /*stable=*/true, 1, /*descending=*/true);
  EXPECT_TRUE(torch::equal(hard_order(map).order, order));
}

TEST(HardOrder, JitterIsSeededPerImageAndOnlyTouchesNearTies) {
  const Tensor map = torch::cat({torch::zeros({2, 50}), torch::ones({2, 50})}, 1);
  const Tensor a = hard_order(map, TieRule::kJitter, 1).order, b = hard_order(map, TieRule::kJitter, 1).order;
  EXPECT_TRUE(torch::equal(a, b));
  EXPECT_FALSE(torch::equal(a[0], a[1]));
  EXPECT_TRUE(torch::equal(a[1], hard_order(map.narrow(0, 1, 1), TieRule::kJitter, 1, 1).order[0]));
  EXPECT_GE(a.narrow(1, 0, 50).min().item<int64_t>(), 50);
  EXPECT_DOUBLE_EQ(hard_order(map, TieRule::kJitter).tie_rate[0].item<double>(), 1);
}

TEST(HardOrder, RefusesMapsWithoutAnOrder) {
  EXPECT_THROW(hard_order(torch::full({1, 4}, NAN)), Error);
  EXPECT_THROW(hard_order(torch::zeros({4})), Error);
  EXPECT_THROW(tie_rule_from_name("coin"), Error);
}

}  // namespace
}  // namespace aha
