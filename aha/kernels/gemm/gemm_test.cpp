#include "aha/kernels/gemm/gemm.h"

#include <cmath>
#include <limits>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::floats_of;
using checks::random_floats;
using checks::random_operand;

class Gemm : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  const KernelSet& reference = reference_kernels(GetParam()->format);
  Format format = GetParam()->format;

  // Bound on a sum at `row`: norms of the operands as the kernel sees them.
  auto bound_of(const Activations& x, const PackedWeights& w) const {
    std::vector<double> rows(x.rows()), columns(w.padded_outputs());
    for (int64_t r = 0; r < x.rows(); ++r) {
      for (int64_t k = 0; k < x.columns(); ++k) rows[r] += x.at(r, k) * x.at(r, k);
    }
    for (int64_t n = 0; n < w.outputs(); ++n) {
      for (int64_t k = 0; k < w.inputs(); ++k) columns[n] += w.at(n, k) * w.at(n, k);
    }
    const double epsilon = checks::product_epsilon(format);
    return [=, depth = w.inputs()](int64_t row, int64_t n) {
      return checks::sum_bound(depth, std::sqrt(rows[row] * columns[n]), epsilon);
    };
  }
};

TEST_P(Gemm, MatchesReferenceAtAwkwardSizes) {
  for (int64_t m : {1, 5, 6, 7, 13, 14, 15, 31, 32, 33, 67})
    for (int64_t k : {1, 31, 32, 33, 200})
      for (int64_t n : {1, 31, 32, 33, 96}) {
        const Activations x = random_operand(format, m, k, 1);
        const auto weights = random_floats(n * k, 2, 0.3f);
        const auto w = PackedWeights::forward(format, weights.data(), n, k);
        const int64_t columns = w.padded_outputs(), stride = columns + 3;
        auto bias = random_floats(columns, 3);
        std::vector<float> found(m * stride, 7), expected(m * stride, 7);
        gemm(kernels, m, x, w, StoreRows{found.data(), stride, bias.data()});
        gemm(reference, m, x, w, StoreRows{expected.data(), stride, bias.data()});
        const auto bound = bound_of(x, w);
        EXPECT_TRUE(all_within(found, expected,
                               [&](size_t i) {
                                 const int64_t row = i / stride, column = i % stride;
                                 return column < columns
                                            ? bound(row, column) + std::abs(expected[i]) * 0x1p-23
                                            : 1e-30;
                               }))
            << m << " x " << k << " x " << n;
      }
}

TEST_P(Gemm, SumsLongRowsInSeveralPasses) {
  const int64_t m = 35, k = 3072, n = 64;
  const Activations x = random_operand(format, m, k, 4);
  const auto weights = random_floats(n * k, 5, 0.02f);
  const auto w = PackedWeights::forward(format, weights.data(), n, k);
  std::vector<float> found(m * n), expected(m * n);
  gemm(kernels, m, x, w, StoreRows{found.data(), n, nullptr});
  gemm(reference, m, x, w, StoreRows{expected.data(), n, nullptr});
  const auto bound = bound_of(x, w);
  EXPECT_TRUE(all_within(found, expected, [&](size_t i) { return bound(i / n, i % n); }));
}

// Against the float32 numbers themselves, before any rounding to the operands' form.
TEST_P(Gemm, IsAsExactAsItsFormPromises) {
  const int64_t m = 40, k = 768, n = 96;
  const auto values = random_floats(m * k, 20), weights = random_floats(n * k, 21, 0.03f);
  Activations x(format, m, k);
  std::vector<float> expected(m * n), found(m * n);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < k; ++c) x.set(r, c, values[r * k + c]);
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) sum += double{values[r * k + i]} * weights[c * k + i];
      expected[r * n + c] = static_cast<float>(sum);
    }
  gemm(kernels, m, x, PackedWeights::forward(format, weights.data(), n, k),
       StoreRows{found.data(), n, nullptr});
  // Two operands rounded: 2^-9 / sqrt 3 each for bf16, 2^-17 for pairs; float32 only sums, sqrt(K) eps at
  // most.
  const double promised = format == Format::kBf16       ? 0x1p-9
                          : format == Format::kBf16Pair ? 0x1p-17
                                                        : 27 * checks::kF32Epsilon;
  EXPECT_LT(checks::relative_distance(found, expected), promised * 1.4142);
}

TEST_P(Gemm, EveryEpilogueMatchesReference) {
  const int64_t images = 3, tokens = 11, m = images * tokens, k = 64, n = 192;
  const Activations x = random_operand(format, m, k, 6);
  const auto weights = random_floats(n * k, 7, 0.2f);
  const auto w = PackedWeights::forward(format, weights.data(), n, k);
  const auto bias = random_floats(n, 8), table = random_floats(tokens * n, 9),
             start = random_floats(m * n, 10);
  Slopes factor(format, m, n);
  const auto noise = random_floats(m * n, 11);
  for (int64_t i = 0; i < m * n; ++i) factor.set(i / n, i % n, std::clamp(0.5f + 0.3f * noise[i], -0.129f, 1.129f));
  const auto bound = bound_of(x, w);
  const double storing = checks::storing_epsilon(format);

  const auto rows_of = [&](const KernelSet& set, bool add) {
    std::vector<float> out = start;
    if (add)
      gemm(set, m, x, w, AddToRows{out.data(), n, bias.data()});
    else
      gemm(set, m, x, w, StoreWithTable{out.data(), n, table.data(), tokens});
    return out;
  };
  for (bool add : {true, false}) {
    const auto expected = rows_of(reference, add);
    EXPECT_TRUE(all_within(rows_of(kernels, add), expected, [&](size_t i) {
      return bound(i / n, i % n) + 0x1p-22 * (1 + std::abs(expected[i]));
    }));
  }

  const auto operand_of = [&](const KernelSet& set, int which) {
    Activations out(format, m, n);
    Slopes slope(format, m, n);
    if (which == 0) gemm(set, m, x, w, StoreActivations{&out, bias.data()});
    if (which == 1 || which == 2) gemm(set, m, x, w, GeluToActivations{&out, bias.data(), &slope});
    if (which == 3) gemm(set, m, x, w, ScaleToActivations{&out, &factor});
    if (which == 4) gemm(set, m, x, w, GeluToActivations{&out, bias.data(), nullptr});
    return which == 2 ? floats_of(slope) : floats_of(out);
  };
  for (int which : {0, 1, 2, 3, 4}) {
    const auto expected = operand_of(reference, which), found = operand_of(kernels, which), factors = floats_of(factor);
    // Two correct roundings of nearly equal values may differ by a step, but few are so near to its edge.
    const bool bytes = which == 2 && format == Format::kBf16;
    const double a_step = bytes ? 1.01 * Slopes::kStep : 0;
    int64_t differing = 0;
    for (size_t i = 0; i < found.size(); ++i) differing += found[i] != expected[i];
    if (bytes) {
      EXPECT_LT(differing, m * n / 100);
    }
    EXPECT_TRUE(all_within(found, expected,
                           [&](size_t i) {
                             // |gelu'| and |gelu''| stay below 1.2; the approximation of Phi adds 1.5e-7 |x|,
                             // |x| < 12 here.
                             const double slope = which == 3 ? std::abs(factors[i]) : 1.2;
                             return slope * bound(i / n, i % n) + storing * std::abs(expected[i]) + a_step + 2e-6;
                           }))
        << "epilogue " << which;
  }

  const auto heads_of = [&](const KernelSet& set) {
    Heads q(format, images, 2, tokens, 32), k2(format, images, 2, tokens, 32),
        v(format, images, 1, tokens, 64);
    gemm(set, m, x, w, StoreHeads{{&q, &k2, &v}, bias.data()});
    auto all = floats_of(q), more = floats_of(k2), rest = floats_of(v);
    all.insert(all.end(), more.begin(), more.end());
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
  };
  const auto expected = heads_of(reference);
  double largest = 0;
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) largest = std::max(largest, bound(r, c));
  EXPECT_TRUE(all_within(heads_of(kernels), expected,
                         [&](size_t i) { return largest + storing * (0.01 + std::abs(expected[i])); }));
}

TEST_P(Gemm, ARowHasTheSameValueAnywhere) {
  const int64_t k = 160, n = 64, m = 83;
  const Activations x = random_operand(format, m, k, 12), bare = random_operand(Format::kF32, m, k, 12);
  const auto weights = random_floats(n * k, 13);
  const auto w = PackedWeights::forward(format, weights.data(), n, k);
  std::vector<float> all(m * n);
  gemm(kernels, m, x, w, StoreRows{all.data(), n, nullptr});
  for (int64_t from : {1, 14, 40, 82})
    for (int64_t place : {0, 3, 33}) {
      Activations alone(format, place + 1, k);
      for (int64_t c = 0; c < k; ++c) alone.set(place, c, bare.at(from, c));
      std::vector<float> out((place + 1) * n);
      gemm(kernels, place + 1, alone, w, StoreRows{out.data(), n, nullptr});
      for (int64_t c = 0; c < n; ++c)
        ASSERT_EQ(out[place * n + c], all[from * n + c]) << from << " at " << place;
    }
}

TEST_P(Gemm, BackwardMultipliesByTheTranspose) {
  const int64_t outputs = 40, inputs = 72;
  const auto weights = random_floats(outputs * inputs, 14);
  const auto back = PackedWeights::backward(format, weights.data(), outputs, inputs);
  const auto forward = PackedWeights::forward(format, weights.data(), outputs, inputs);
  EXPECT_EQ(back.outputs(), inputs);
  EXPECT_EQ(back.inputs(), outputs);
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k) ASSERT_EQ(back.at(k, n), forward.at(n, k));
}

TEST_P(Gemm, ThePackOfTheWayBackComesFromThatOfTheWayForward) {
  PackedWeights back;
  for (int64_t outputs : {1, 31, 32, 33, 100})  // first small, then growing, then in memory that held more
    for (int64_t inputs : {200, 1, 33, 64}) {
      const auto weights = random_floats(outputs * inputs, 14);
      const auto forward = PackedWeights::forward(format, weights.data(), outputs, inputs);
      transpose_weights(kernels, forward, back);
      ASSERT_EQ(back.outputs(), inputs);
      ASSERT_EQ(back.inputs(), outputs);
      for (int64_t k = 0; k < back.padded_outputs(); ++k)
        for (int64_t n = 0; n < back.padded_inputs(); ++n)
          ASSERT_EQ(back.at(k, n), n < outputs && k < inputs ? forward.at(n, k) : 0) << outputs << " x " << inputs;
    }
}

TEST_P(Gemm, NanReachesItsRowAndNoOther) {
  const int64_t m = 20, k = 64, n = 32;
  Activations x = random_operand(format, m, k, 15);
  x.set(3, 5, std::numeric_limits<float>::quiet_NaN());
  const auto weights = random_floats(n * k, 16);
  Activations out(format, m, n);
  gemm(kernels, m, x, PackedWeights::forward(format, weights.data(), n, k),
       GeluToActivations{&out, nullptr, nullptr});
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < n; ++c) ASSERT_EQ(std::isnan(out.at(r, c)), r == 3) << r << ", " << c;
}

TEST_P(Gemm, RefusesWrongShapes) {
  const auto weights = random_floats(32 * 64, 17);
  const auto w = PackedWeights::forward(format, weights.data(), 32, 64);
  std::vector<float> out(32 * 32);
  const Activations narrow = random_operand(format, 4, 32, 18), right = random_operand(format, 4, 64, 18);
  EXPECT_THROW(gemm(kernels, 4, narrow, w, StoreRows{out.data(), 32, nullptr}), Error);
  EXPECT_THROW(gemm(kernels, 5, right, w, StoreRows{out.data(), 32, nullptr}), Error);
  EXPECT_THROW(gemm(kernels, 4, right, w, StoreRows{out.data(), 31, nullptr}), Error);
}

TEST(Slopes, AreRoundedToHalfAStepInBytesAndMeetWhatGeluSettlesAt) {
  Slopes bytes(Format::kBf16, 3, 40), pairs(Format::kBf16Pair, 3, 40);
  for (float value = -0.129f; value < 1.13f; value += 0.0007f) {
    bytes.set(2, 39, value);
    pairs.set(2, 39, value);
    EXPECT_LE(std::abs(bytes.at(2, 39) - value), 0.501f * Slopes::kStep);
    EXPECT_LE(std::abs(pairs.at(2, 39) - value), 0x1p-17f * std::abs(value));
  }
  for (float value : {0.f, 0.5f, 1.f}) {
    bytes.set(0, 5, value);
    EXPECT_EQ(bytes.at(0, 5), value);
  }
  EXPECT_EQ(bytes.bytes(), 32 * 64);
}

INSTANTIATE_TEST_SUITE_P(Sets, Gemm, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

TEST(BfloatPair, KeepsSeventeenBits) {
  Activations a(Format::kBf16Pair, 1, 32);
  const auto values = random_floats(32, 19);
  for (int64_t c = 0; c < 32; ++c) {
    a.set(0, c, values[c]);
    EXPECT_LE(std::abs(a.at(0, c) - values[c]), 0x1p-17 * std::abs(values[c]));
  }
}

TEST(Bfloat, RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(bf16_from_float(1.0f), 0x3f80);
  EXPECT_EQ(bf16_from_float(1.0f + 0x1p-8f), 0x3f80);            // half way: to even
  EXPECT_EQ(bf16_from_float(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);  // half way: to even
  EXPECT_EQ(bf16_from_float(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
  EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_EQ(float_from_bf16(bf16_from_float(std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace aha
