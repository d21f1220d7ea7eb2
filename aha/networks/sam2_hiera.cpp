#include "aha/networks/sam2_hiera.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "aha/base/error.h"
#include "aha/networks/family.h"

namespace aha {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// (size, side): resampling as PyTorch's bicubic does it, cubic convolution with a = -0.75, half-pixel
// centers.
Matrix bicubic_matrix(int64_t side, int64_t size) {
  constexpr double a = -0.75;
  const auto near = [](double x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](double x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  Matrix m = Matrix::Zero(size, side);
  for (int64_t i = 0; i < size; ++i) {
    const double x = (static_cast<double>(i) + 0.5) * static_cast<double>(side) / static_cast<double>(size);
    const double floor = std::floor(x - 0.5), t = x - 0.5 - floor;
    const double weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int64_t k = 0; k < 4; ++k)
      m(i, std::clamp<int64_t>(static_cast<int64_t>(floor) - 1 + k, 0, side - 1)) += weights[k];
  }
  return m;
}

// (size, side): tiles of this side, one after the other.
Matrix tiling_matrix(int64_t side, int64_t size) {
  Matrix m = Matrix::Zero(size, side);
  for (int64_t i = 0; i < size; ++i) m(i, i % side) = 1;
  return m;
}

Matrix kronecker(const Matrix& a, const Matrix& b) {
  Matrix m(a.rows() * b.rows(), a.cols() * b.cols());
  for (Eigen::Index i = 0; i < a.rows(); ++i)
    for (Eigen::Index j = 0; j < a.cols(); ++j)
      m.block(i * b.rows(), j * b.cols(), b.rows(), b.cols()) = a(i, j) * b;
  return m;
}

// One of the two ways in which a small map spreads over the large one.
struct Spread {
  Matrix rows, columns;  // (h, side), (w, side)

  // The large map's part of each number of the small one, row-major.
  void collect(const Matrix& map, double* out) const {
    const Matrix half = map.lazyProduct(columns);
    Eigen::Map<Matrix>(out, rows.cols(), columns.cols()) = rows.transpose().lazyProduct(half);
  }
  Matrix spread(const double* small) const {
    const Eigen::Map<const Matrix> numbers(small, rows.cols(), columns.cols());
    const Matrix half = numbers.lazyProduct(columns.transpose());
    return rows.lazyProduct(half);
  }
};

// Lazy products, here and above, add in one order; the others' order depends on the caches of the CPU.
Matrix products(const Spread& a, const Spread& b) {
  return kronecker(a.rows.transpose().lazyProduct(b.rows), a.columns.transpose().lazyProduct(b.columns));
}

// "/image_encoder/trunk/blocks.0/attn/qkv/Transpose_output_0" -> "trunk.blocks.0.attn.qkv.weight"; empty for
// a name of another kind.
std::string transposed_weight(std::string name) {
  constexpr std::string_view kBegin = "/image_encoder/trunk/blocks.", kEnd = "/Transpose_output_0";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return "";
  name = "trunk." + name.substr(kBegin.size() - std::string_view("blocks.").size());
  name.resize(name.size() - kEnd.size());
  std::ranges::replace(name, '/', '.');
  return name + ".weight";
}

}  // namespace

HieraPlaces places_from_map(const Tensor& places, int coarse_side, int tile_side, const std::string& where) {
  const int64_t c = coarse_side, t = tile_side, coarse_count = c * c, count = c * c + t * t;
  check_shape(places, {1, -1, -1, -1}, where);
  const int64_t C = places.size(1), h = places.size(2), w = places.size(3);
  if (std::min(h, w) < 2 * std::max(c, t))
    throw input_error("{}: expected at least {} tokens a side, found {} x {}", where, 2 * std::max(c, t), h,
                      w);
  const Spread coarse = {bicubic_matrix(c, h), bicubic_matrix(c, w)},
               tiles = {tiling_matrix(t, h), tiling_matrix(t, w)};

  // Normal equations. What no equation says, the constant that may move between the two, is set to zero by a
  // term of its own.
  Matrix normal(count, count);
  normal.topLeftCorner(coarse_count, coarse_count) = products(coarse, coarse);
  normal.bottomRightCorner(t * t, t * t) = products(tiles, tiles);
  normal.topRightCorner(coarse_count, t * t) = products(coarse, tiles);
  normal.bottomLeftCorner(t * t, coarse_count) =
      normal.topRightCorner(coarse_count, t * t).transpose().eval();
  Eigen::VectorXd moved = Eigen::VectorXd::Ones(count);
  moved.tail(t * t).setConstant(-1);
  normal += normal.trace() / static_cast<double>(count * count) * moved * moved.transpose();
  const Eigen::LLT<Matrix> factors(normal);

  const Tensor wide = places.to(torch::kCPU, torch::kFloat64).contiguous();
  Matrix right(C, count);
  const auto map_of = [&](int64_t channel) {
    return Eigen::Map<const Matrix>(wide.data_ptr<double>() + channel * h * w, h, w);
  };
  for (int64_t i = 0; i < C; ++i) {
    coarse.collect(map_of(i), right.row(i).data());
    tiles.collect(map_of(i), right.row(i).data() + coarse_count);
  }
  const Matrix found = factors.solve(right.transpose()).transpose();  // (C, count)

  double missed = 0, all = 0;
  for (int64_t i = 0; i < C; ++i) {
    const double* numbers = found.row(i).data();
    missed += (coarse.spread(numbers) + tiles.spread(numbers + coarse_count) - map_of(i)).squaredNorm();
    all += map_of(i).squaredNorm();
  }
  constexpr double kMost = 1e-5;  // of the norm; float32 leaves 2e-7
  if (factors.info() != Eigen::Success || !(std::sqrt(missed) <= kMost * std::sqrt(all)))
    throw input_error(
        "{}: expected a map of {} x {} places resampled plus tiles of {} x {}, found another one ({:.2g} of "
        "it is left over)",
        where, c, c, t, t, std::sqrt(missed / all));
  const auto part = [&](int64_t first, int64_t side) {
    Tensor out = torch::empty({1, C, side, side}, torch::kFloat32);
    for (int64_t i = 0; i < C; ++i)
      for (int64_t k = 0; k < side * side; ++k)
        out.data_ptr<float>()[i * side * side + k] = static_cast<float>(found(i, first + k));
    return out;
  };
  return {part(0, c), part(coarse_count, t)};
}

Hiera hiera_from_sam2(const TensorTable& graph, const HieraConfig& config) {
  constexpr std::string_view kModel = "model.image_encoder.",
                             kPlaces = "/image_encoder/trunk/Transpose_output_0";
  TensorTable table;
  table.source = graph.source;
  for (const auto& [name, view] : graph.tensors) {
    if (const std::string weight = transposed_weight(name); !weight.empty()) {
      const Tensor tensor = float_tensor_from_view(view);
      check_shape(tensor, {-1, -1}, fmt::format("{}: {}", graph.source, printable(name)));
      table.tensors[weight] = view_from_tensor(tensor.t().contiguous());
    } else if (name.starts_with(kModel)) {
      table.tensors[name.substr(kModel.size())] = view;
    }
  }
  const auto places = places_from_map(float_tensor_from_view(graph.at(kPlaces)), config.position_side,
                                      config.windows.at(0), fmt::format("{}: {}", graph.source, kPlaces));
  table.tensors["trunk.pos_embed"] = view_from_tensor(places.coarse);
  table.tensors["trunk.pos_embed_window"] = view_from_tensor(places.tiles);

  const auto weights = canonical_weights(table);
  Hiera network(hiera_config_from_weights(weights, config));
  network->load_weights(weights.table);
  return network;
}

}  // namespace aha
