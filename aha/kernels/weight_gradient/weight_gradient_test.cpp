#include "aha/kernels/weight_gradient/weight_gradient.h"

#include <gtest/gtest.h>

#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using namespace checks;

struct Shape {
  int64_t rows, capacity, N, K;
};
// Slices and tiles that end early, columns that are no multiple of a strip, operands larger than their use.
constexpr Shape kShapes[] = {
    {1, 1, 32, 32}, {33, 64, 64, 32}, {70, 70, 45, 37}, {300, 320, 96, 64}, {513, 513, 33, 96}};

class WeightGradientOf : public ::testing::TestWithParam<const KernelSet*> {};

TEST_P(WeightGradientOf, IsTheSumOverRowsOfOuterProducts) {
  const KernelSet& kernels = *GetParam();
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " rows, " << shape.N << " x " << shape.K);
    const Activations dy = random_operand(kernels.format, shape.capacity, shape.N, 1);
    const Activations x = random_operand(kernels.format, shape.capacity, shape.K, 2);
    const int64_t stride = rounded_to_strip(shape.K) + 3;
    const std::vector<float> before = random_floats(shape.N * stride, 3);
    std::vector<float> weight = before, expected = before;
    std::vector<float> bias = random_floats(rounded_to_strip(shape.N), 4), expected_bias = bias;
    weight_gradient(kernels, shape.rows, {&dy, &x, weight.data(), stride, bias.data()});
    weight_gradient(reference_kernels(kernels.format), shape.rows,
                    {&dy, &x, expected.data(), stride, expected_bias.data()});
    std::vector<double> dy_norm(shape.N), x_norm(shape.K);
    const auto column_norm = [&](const Activations& a, int64_t c) {
      double sum = 0;
      for (int64_t r = 0; r < shape.rows; ++r) sum += double{a.at(r, c)} * a.at(r, c);
      return std::sqrt(sum);
    };
    for (int64_t n = 0; n < shape.N; ++n) dy_norm[n] = column_norm(dy, n);
    for (int64_t k = 0; k < shape.K; ++k) x_norm[k] = column_norm(x, k);
    EXPECT_TRUE(all_within(weight, expected, [&](size_t i) {
      const int64_t n = static_cast<int64_t>(i) / stride, k = static_cast<int64_t>(i) % stride;
      return k < shape.K ? sum_bound(shape.rows + 1, dy_norm[n] * x_norm[k] + std::abs(before[i]),
                                     product_epsilon(kernels.format))
                         : 1e-37;
    }));
    EXPECT_TRUE(all_within(bias, expected_bias, [&](size_t n) {
      return n < static_cast<size_t>(shape.N)
                 ? sum_bound(shape.rows + 1, dy_norm[n] * std::sqrt(static_cast<double>(shape.rows)) + 5)
                 : 1e-37;
    }));
  }
}

TEST_P(WeightGradientOf, OperandsMadeOfRowsAreTheRoundedRows) {
  const KernelSet& kernels = *GetParam();
  for (int64_t columns : {32, 45, 96}) {
    const std::vector<float> rows = random_floats(40 * 100, 5);
    Activations found(kernels.format, 41, columns), expected(kernels.format, 41, columns);
    operand_from_rows(kernels, 40, rows.data(), 100, found);
    for (int64_t r = 0; r < 40; ++r)
      for (int64_t c = 0; c < columns; ++c) expected.set(r, c, rows[r * 100 + c]);
    EXPECT_EQ(floats_of(found), floats_of(expected)) << columns << " columns";
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, WeightGradientOf, ::testing::ValuesIn(sets_to_test()), set_name);

}  // namespace
}  // namespace aha
