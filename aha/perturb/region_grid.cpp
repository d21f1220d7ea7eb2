#include "aha/perturb/region_grid.h"

#include <cmath>

#include "aha/base/error.h"

namespace aha {
namespace {

// The cell of every pixel of a line, numbered without gaps.
std::vector<int64_t> cells_of_line(int64_t pixels, int64_t G, double offset) {
  std::vector<int64_t> cells;
  int64_t last = -1, number = -1;
  for (int64_t y = 0; y < pixels; ++y) {
    const auto cell = static_cast<int64_t>(
        std::floor((y + 0.5) * static_cast<double>(G) / static_cast<double>(pixels) + offset));
    if (cell != last) ++number;
    last = cell;
    cells.push_back(number);
  }
  return cells;
}

// (cells, pixels) of 0 and 1
Tensor membership(const Tensor& cells, int64_t count) {
  return torch::arange(count).unsqueeze(1).eq(cells).to(torch::kFloat64);
}

}  // namespace

Tensor RegionGrid::region_of_pixel() const {
  return (row_of_y.unsqueeze(1) * columns + column_of_x).flatten().to(torch::kInt32);
}

RegionGrid make_grid(int64_t height, int64_t width, int64_t G, double offset_y, double offset_x) {
  if (height < 1 || width < 1)
    throw input_error("grid: expected an image, found {} x {} pixels", width, height);
  if (G < 1 || G > 100000) throw input_error("grid: expected 1..100000 cells a side, found {}", G);
  for (double offset : {offset_y, offset_x})
    if (!(offset >= 0 && offset < 1))
      throw input_error("grid: expected offsets in [0, 1) cells, found {}", offset);
  RegionGrid grid;
  grid.height = height;
  grid.width = width;
  grid.row_of_y = torch::tensor(cells_of_line(height, G, offset_y), torch::kInt64);
  grid.column_of_x = torch::tensor(cells_of_line(width, G, offset_x), torch::kInt64);
  grid.rows = grid.row_of_y[-1].item<int64_t>() + 1;
  grid.columns = grid.column_of_x[-1].item<int64_t>() + 1;
  return grid;
}

Tensor pool(const RegionGrid& grid, const Tensor& map) {
  check_shape(map, {-1, grid.height, grid.width}, "map");
  // In double the sum of up to 2^29 equal floats is exact, and so is its mean.
  const Tensor rows = membership(grid.row_of_y, grid.rows),
               columns = membership(grid.column_of_x, grid.columns);
  const Tensor sizes = rows.sum(1, true) * columns.sum(1);  // (rows, columns)
  const Tensor sums =
      rows.to(map.device()).matmul(map.to(torch::kFloat64)).matmul(columns.t().to(map.device()));
  return (sums / sizes.to(map.device())).flatten(1).to(map.scalar_type());
}

Tensor upsample(const RegionGrid& grid, const Tensor& values) {
  if ((values.dim() != 2 && values.dim() != 3) || values.size(-1) != grid.K())
    throw input_error("regions: expected shape [B, {0}] or [B, S, {0}], found {1}", grid.K(),
                      text_from_shape({values.sizes().data(), values.sizes().size()}));
  const Tensor cells = values.unflatten(-1, {grid.rows, grid.columns});
  return cells.index_select(-2, grid.row_of_y.to(values.device()))
      .index_select(-1, grid.column_of_x.to(values.device()));
}

}  // namespace aha
