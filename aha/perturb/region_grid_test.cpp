#include "aha/perturb/region_grid.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

TEST(RegionGrid, HasGSquaredCellsWithoutOffset) {
  for (int64_t G = 1; G <= 32; ++G) EXPECT_EQ(make_grid(224, 224, G).K(), G * G);
  const RegionGrid grid = make_grid(4, 6, 2);
  const std::vector<int32_t> expected = {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1,
                                         2, 2, 2, 3, 3, 3, 2, 2, 2, 3, 3, 3};
  EXPECT_TRUE(torch::equal(grid.region_of_pixel(), torch::tensor(expected, torch::kInt32)));
}

TEST(RegionGrid, AnOffsetShiftsTheBordersAndCutsTheOuterCells) {
  const RegionGrid grid = make_grid(8, 8, 2, 0.5, 0);
  EXPECT_EQ(grid.rows, 3);
  EXPECT_EQ(grid.columns, 2);
  EXPECT_TRUE(torch::equal(grid.row_of_y, torch::tensor({0, 0, 1, 1, 1, 1, 2, 2}, torch::kInt64)));
}

TEST(RegionGrid, LeavesNoRegionEmpty) {
  for (int64_t side : {1, 5, 32, 224}) {
    for (int64_t G : {1, 3, 7, 28, 300}) {
      for (double offset : {0.0, 0.013, 0.5, 0.999}) {
        const RegionGrid grid = make_grid(side, side + 3, G, offset, 1 - offset - 1e-3 * (offset == 0));
        const Tensor sizes = torch::bincount(grid.region_of_pixel().to(torch::kInt64), {}, grid.K());
        EXPECT_EQ(sizes.numel(), grid.K());
        EXPECT_GE(sizes.min().item<int64_t>(), 1);
      }
    }
  }
}

TEST(RegionGrid, PoolInvertsUpsampleToTheLastBit) {
  torch::manual_seed(1);
  for (int64_t G : {1, 7, 13, 14, 28}) {
    const RegionGrid grid = make_grid(224, 224, G, 0.37, 0.81);
    const Tensor values = torch::randn({2, grid.K()});
    EXPECT_TRUE(torch::equal(pool(grid, upsample(grid, values)), values)) << G;
  }
}

TEST(RegionGrid, PoolIsTheMeanOverTheRegion) {
  torch::manual_seed(2);
  const RegionGrid grid = make_grid(9, 7, 3, 0.4, 0);
  const Tensor map = torch::rand({2, 9, 7}, torch::kFloat64), pooled = pool(grid, map),
               region = grid.region_of_pixel();
  for (int64_t k = 0; k < grid.K(); ++k) {
    const Tensor mean = map.flatten(1).index_select(1, region.eq(k).nonzero().flatten()).mean(1);
    EXPECT_LT((pooled.select(1, k) - mean).abs().max().item<double>(), 1e-15);
  }
}

TEST(RegionGrid, UpsampleTakesBatchesOfMasks) {
  const RegionGrid grid = make_grid(6, 6, 3);
  const Tensor masks = torch::rand({2, 4, 9}), pixels = upsample(grid, masks);
  EXPECT_EQ(pixels.sizes(), (std::vector<int64_t>{2, 4, 6, 6}));
  EXPECT_TRUE(
      torch::equal(pixels.flatten(2), masks.index_select(2, grid.region_of_pixel().to(torch::kInt64))));
}

TEST(RegionGrid, GradientsEqualFiniteDifferences) {
  torch::manual_seed(3);
  const RegionGrid grid = make_grid(5, 6, 2, 0.3, 0.6);
  const Tensor by_region = torch::randn({1, grid.K()}, torch::kFloat64),
               by_pixel = torch::randn({1, 5, 6}, torch::kFloat64);
  EXPECT_LT(checks::gradient_error(
                [&](const Tensor& x) { return (pool(grid, x).square() * by_region).sum(); }, by_pixel),
            1e-6);
  EXPECT_LT(checks::gradient_error(
                [&](const Tensor& x) { return (upsample(grid, x).square() * by_pixel).sum(); }, by_region),
            1e-6);
}

TEST(RegionGrid, RefusesImpossibleGrids) {
  EXPECT_THROW(make_grid(0, 4, 2), Error);
  EXPECT_THROW(make_grid(4, 4, 0), Error);
  EXPECT_THROW(make_grid(4, 4, 2, 1.0, 0), Error);
  EXPECT_THROW(pool(make_grid(4, 4, 2), torch::zeros({1, 5, 4})), Error);
  EXPECT_THROW(upsample(make_grid(4, 4, 2), torch::zeros({1, 5})), Error);
}

}  // namespace
}  // namespace aha
