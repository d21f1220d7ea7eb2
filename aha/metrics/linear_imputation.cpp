#include "aha/metrics/linear_imputation.h"

#include <Eigen/SparseCholesky>
#include <algorithm>

#include "aha/base/error.h"

namespace aha {
namespace {

using SparseMatrix = Eigen::SparseMatrix<double>;

constexpr double kBeside = 1.0 / 6, kDiagonal = 1.0 / 12;

// Both halves of a rectangle first, then the line between them.
void add_dissected(int64_t x0, int64_t y0, int64_t x1, int64_t y1, ImputationGrid& grid) {
  constexpr int64_t kSmall = 16;  // pixels that are not divided further
  const int64_t w = x1 - x0, h = y1 - y0;
  const auto add = [&](int64_t left, int64_t top, int64_t right, int64_t bottom) {
    for (int64_t y = top; y < bottom; ++y)
      for (int64_t x = left; x < right; ++x) grid.order.push_back(static_cast<int32_t>(y * grid.width + x));
  };
  if (w * h <= kSmall) return add(x0, y0, x1, y1);
  const int64_t middle = w >= h ? (x0 + x1) / 2 : (y0 + y1) / 2;
  if (w >= h) {
    add_dissected(x0, y0, middle, y1, grid);
    add_dissected(middle + 1, y0, x1, y1, grid);
    add(middle, y0, middle + 1, y1);
  } else {
    add_dissected(x0, y0, x1, middle, grid);
    add_dissected(x0, middle + 1, x1, y1, grid);
    add(x0, middle, x1, middle + 1);
  }
}

}  // namespace

ImputationGrid imputation_grid(int64_t height, int64_t width) {
  ImputationGrid grid{height, width, {}};
  grid.order.reserve(static_cast<size_t>(height * width));
  add_dissected(0, 0, width, height, grid);
  return grid;
}

void impute(const ImputationGrid& grid, std::span<const uint8_t> missing, std::span<float> image) {
  const int64_t H = grid.height, W = grid.width, N = H * W, C = std::ssize(image) / N;
  if (std::ssize(missing) != N || C < 1 || C * N != std::ssize(image))
    throw input_error("imputation: expected a mask of {} pixels and an image of them, found {} and {} values",
                      N, missing.size(), image.size());
  std::vector<int32_t> unknowns;
  std::vector<int32_t> row(static_cast<size_t>(N), -1);  // of the matrix; -1 = known
  for (const int32_t pixel : grid.order)
    if (missing[pixel]) {
      row[pixel] = static_cast<int32_t>(unknowns.size());
      unknowns.push_back(pixel);
    }
  const auto U = static_cast<Eigen::Index>(unknowns.size());
  if (U == 0) return;
  if (U == N) throw input_error("imputation: expected one known pixel or more, found none");

  std::vector<Eigen::Triplet<double>> entries;  // of the lower half
  entries.reserve(static_cast<size_t>(U) * 5);
  Eigen::MatrixXd right = Eigen::MatrixXd::Zero(U, C);
  for (const int32_t pixel : unknowns) {
    const int64_t y = pixel / W, x = pixel % W;
    const int32_t mine = row[pixel];
    double diagonal = 1;
    for (int64_t dy = -1; dy <= 1; ++dy)
      for (int64_t dx = -1; dx <= 1; ++dx) {
        if (dx == 0 && dy == 0) continue;
        const double weight = dx != 0 && dy != 0 ? kDiagonal : kBeside;
        if (y + dy < 0 || y + dy >= H || x + dx < 0 || x + dx >= W) {
          diagonal -= weight;
          continue;
        }
        const int64_t neighbor = (y + dy) * W + x + dx;
        if (row[neighbor] < 0)
          for (int64_t c = 0; c < C; ++c) right(mine, c) += weight * image[c * N + neighbor];
        else if (row[neighbor] > mine)
          entries.emplace_back(row[neighbor], mine, -weight);
      }
    entries.emplace_back(mine, mine, diagonal);
  }
  SparseMatrix matrix(U, U);
  matrix.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLDLT<SparseMatrix, Eigen::Lower, Eigen::NaturalOrdering<int>> factors(matrix);
  if (factors.info() != Eigen::Success) throw work_error("imputation: the factorization failed");
  const Eigen::MatrixXd values = factors.solve(right);  // (U, C)
  for (Eigen::Index u = 0; u < U; ++u)
    for (int64_t c = 0; c < C; ++c) image[c * N + unknowns[u]] = static_cast<float>(values(u, c));
}

}  // namespace aha
