// An image cut into a regular grid of regions: the K things that are ordered.
//
// G cells a side, H / G by W / G pixels each; pixel y belongs to cell row floor((y + 1/2) G / H + offset_y).
// With offsets in [0, 1) (random in training, so that no border is always a border) the first and the last
// cells are smaller and there is a row and a column more. Cells without a pixel (G > H) are left out, so that
// K = rows * columns counts regions that exist. Sizes need not divide.
//
// upsample gives every pixel its region's value, pool the mean over the region: pool(upsample(x)) == x to the
// last bit in float32. Both are differentiable.
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

struct RegionGrid {
  int64_t height = 0, width = 0;  // pixels
  int64_t rows = 0, columns = 0;  // regions
  Tensor row_of_y, column_of_x;   // (H), (W) int64

  int64_t K() const { return rows * columns; }
  Tensor region_of_pixel() const;  // (H * W) int32, row-major: row * columns + column
};

RegionGrid make_grid(int64_t height, int64_t width, int64_t G, double offset_y = 0, double offset_x = 0);

// map (B, H, W) -> scores (B, K)
Tensor pool(const RegionGrid& grid, const Tensor& map);

// values (B, K) -> (B, H, W), or (B, S, K) -> (B, S, H, W)
Tensor upsample(const RegionGrid& grid, const Tensor& values);

}  // namespace aha
