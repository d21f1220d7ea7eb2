#include "aha/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::floats_of;
using checks::random_heads;

struct Sizes {
  int64_t images, heads, queries, tokens, width;
};

// Relative error of one product inside attention: the weights, whose products with v and the like are summed,
// are rounded to the form as well.
double inner_epsilon(Format format) {
  return format == Format::kBf16 ? 0x1p-8 : checks::product_epsilon(format) + 4 * checks::kF32Epsilon;
}

class Attention : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  const KernelSet& reference = reference_kernels(GetParam()->format);
  Format format = GetParam()->format;

  struct Case {
    Heads q, k, v, dout;
    AttentionInput input() const { return {&q, &k, &v, q.images()}; }
  };
  Case random_case(const Sizes& s, uint64_t seed) const {
    // Scores of standard deviation 1: q carries 1 / sqrt(width).
    return {random_heads(format, s.images, s.heads, s.queries, s.width, seed,
                         1 / std::sqrt(static_cast<float>(s.width))),
            random_heads(format, s.images, s.heads, s.tokens, s.width, seed + 1),
            random_heads(format, s.images, s.heads, s.tokens, s.width, seed + 2),
            random_heads(format, s.images, s.heads, s.queries, s.width, seed + 3)};
  }
  struct Result {
    std::vector<float> out, log_sum_exp;
  };
  Result forward(const KernelSet& set, const Case& c) const {
    Activations out(format, c.q.images() * c.q.tokens(), c.q.columns());
    std::vector<float> sums(c.q.images() * c.q.heads() * c.q.tokens());
    attention_forward(set, c.input(), out, sums.data());
    return {floats_of(out), sums};
  }
  struct Gradients {
    std::vector<float> dq, dkv;
  };
  Gradients backward(const KernelSet& set, const Case& c, const std::vector<float>& log_sum_exp) const {
    Activations dq(format, c.q.images() * c.q.tokens(), c.q.columns()),
        dkv(format, c.q.images() * c.k.tokens(), 2 * c.q.columns());
    attention_backward(set, c.input(), {&c.dout, log_sum_exp.data(), &dq, 0, &dkv, 0, &dkv, c.q.columns()});
    return {floats_of(dq), floats_of(dkv)};
  }
};

const Sizes kSizes[] = {{1, 1, 1, 1, 32},   {2, 1, 5, 5, 32},   {1, 2, 15, 15, 64}, {1, 1, 16, 16, 64},
                        {2, 3, 17, 17, 64}, {1, 2, 31, 31, 32}, {1, 1, 32, 32, 64}, {1, 2, 33, 33, 96},
                        {1, 1, 65, 65, 64}, {2, 2, 1, 50, 64},  {1, 1, 3, 197, 64}};

TEST_P(Attention, ForwardMatchesReference) {
  for (const Sizes& s : kSizes) {
    const Case c = random_case(s, 1);
    const Result found = forward(kernels, c), expected = forward(reference, c);
    // The result is a mean of values of size 1: each score errs by sqrt(width) products of size |q| |k| /
    // sqrt(width) ~ 1, each weight by its rounding.
    const double bound = checks::sum_bound(s.width, 4, inner_epsilon(format)) / std::sqrt(s.width);
    EXPECT_TRUE(all_within(
        found.out, expected.out,
        [&](size_t i) { return bound + checks::storing_epsilon(format) * std::abs(expected.out[i]); }))
        << s.tokens << " tokens of " << s.width;
    const double score_bound = checks::sum_bound(s.width, 8, checks::product_epsilon(format)) + 4e-6;
    EXPECT_TRUE(all_within(found.log_sum_exp, expected.log_sum_exp, [&](size_t) { return score_bound; }));
  }
}

TEST_P(Attention, BackwardMatchesReference) {
  for (const Sizes& s : kSizes) {
    const Case c = random_case(s, 5);
    const Result saved = forward(reference, c);
    const Gradients found = backward(kernels, c, saved.log_sum_exp),
                    expected = backward(reference, c, saved.log_sum_exp);
    // dP = dout v^T has size sqrt(width); P and dS are rounded to the form and summed over at most all
    // tokens.
    const double size = std::sqrt(static_cast<double>(s.width));
    const double bound = checks::sum_bound(std::max(s.queries, s.width), size / 2, inner_epsilon(format));
    EXPECT_TRUE(all_within(
        found.dq, expected.dq,
        [&](size_t i) { return bound + checks::storing_epsilon(format) * std::abs(expected.dq[i]); }))
        << "dq, " << s.tokens << " tokens of " << s.width;
    EXPECT_TRUE(all_within(
        found.dkv, expected.dkv,
        [&](size_t i) { return bound + checks::storing_epsilon(format) * std::abs(expected.dkv[i]); }))
        << "dk, dv, " << s.tokens << " tokens of " << s.width;
    const double far = format == Format::kBf16 ? 6e-3 : 2e-5;
    EXPECT_LT(checks::relative_distance(found.dkv, expected.dkv), far)
        << s.tokens << " tokens of " << s.width;
    if (s.tokens > 1) {
      EXPECT_LT(checks::relative_distance(found.dq, expected.dq), far)
          << s.tokens << " tokens of " << s.width;
    }
  }
}

TEST_P(Attention, WeightsMatchReferenceAndAreThoseOfTheForward) {
  struct Shown {
    std::vector<float> weights, d_weights;
  };
  const auto show = [&](const KernelSet& set, const Case& c, const std::vector<float>& log_sum_exp,
                        int64_t queries) {
    Shown out;
    const int64_t one = c.q.heads() * queries * c.k.tokens();
    out.weights.resize(c.q.images() * one, -1), out.d_weights = out.weights;
    for (int64_t i = 0; i < c.q.images(); ++i)
      attention_weights(set, c.input(),
                        {i, queries, log_sum_exp.data(), out.weights.data() + i * one, &c.dout,
                         out.d_weights.data() + i * one});
    return out;
  };
  for (const Sizes& s : kSizes) {
    const Case c = random_case(s, 21);
    const Result saved = forward(reference, c);
    const Shown found = show(kernels, c, saved.log_sum_exp, s.queries),
                expected = show(reference, c, saved.log_sum_exp, s.queries);
    // A score is a sum of `width` products, |q| = 1 and |k| = sqrt(width); its exponential errs by as much of
    // itself.
    const double norms = 2 * std::sqrt(static_cast<double>(s.width));
    const double score_bound = checks::sum_bound(s.width, norms, checks::product_epsilon(format)) + 4e-6;
    EXPECT_TRUE(all_within(found.weights, expected.weights,
                           [&](size_t i) { return score_bound * expected.weights[i] + 1e-12; }))
        << s.tokens << " tokens of " << s.width;
    const double bound = checks::sum_bound(s.width, 2.0 * s.width, checks::product_epsilon(format));
    EXPECT_TRUE(all_within(found.d_weights, expected.d_weights, [&](size_t) { return bound; }))
        << s.tokens << " tokens of " << s.width;
    // Rows of a softmax, with the sum of this set's own forward pass.
    const Shown own = show(kernels, c, forward(kernels, c).log_sum_exp, s.queries);
    for (size_t row = 0; row < own.weights.size(); row += s.tokens) {
      double sum = 0;
      for (int64_t j = 0; j < s.tokens; ++j) sum += own.weights[row + j];
      EXPECT_NEAR(sum, 1, 4e-6);
    }
    // The first query alone has the same bits.
    const Shown first = show(kernels, c, saved.log_sum_exp, 1);
    for (int64_t h = 0; h < s.images * s.heads; ++h)
      for (int64_t j = 0; j < s.tokens; ++j)
        ASSERT_EQ(first.d_weights[h * s.tokens + j], found.d_weights[h * s.queries * s.tokens + j]);
  }
}

TEST_P(Attention, AnImageHasTheSameValueAnywhere) {
  const Case all = random_case({3, 2, 37, 37, 64}, 9);
  const Result together = forward(kernels, all);
  Case alone{Heads(format, 1, 2, 37, 64), Heads(format, 1, 2, 37, 64), Heads(format, 1, 2, 37, 64),
             Heads(format, 1, 2, 37, 64)};
  const auto copy = [](const Heads& from, Heads& to) {
    const int64_t image = from.offset(1, 0), plane = to.plane();
    if (from.format() == Format::kF32)
      std::copy_n(from.f32() + 2 * image, image, to.f32());
    else
      std::copy_n(from.bf16() + 2 * image, image, to.bf16());
    if (from.format() == Format::kBf16Pair)
      std::copy_n(from.bf16() + from.plane() + 2 * image, image, to.bf16() + plane);
  };
  copy(all.q, alone.q), copy(all.k, alone.k), copy(all.v, alone.v), copy(all.dout, alone.dout);
  const Result single = forward(kernels, alone);
  const size_t one = single.out.size();
  EXPECT_EQ(single.out, std::vector<float>(together.out.begin() + 2 * one, together.out.end()));
  const Gradients both = backward(kernels, all, together.log_sum_exp),
                  separate = backward(kernels, alone, single.log_sum_exp);
  EXPECT_EQ(separate.dkv, std::vector<float>(both.dkv.begin() + 2 * separate.dkv.size(), both.dkv.end()));
}

TEST_P(Attention, TheClassTokenAloneGetsWhatItGetsAmongAll) {
  const Case all = random_case({2, 2, 50, 50, 64}, 13);
  const Heads bare =
      random_heads(Format::kF32, 2, 2, 50, 64, 13, 0.125f);  // the queries before rounding to the form
  // The same seeds as in random_case give the same keys and values.
  Case first{Heads(format, 2, 2, 1, 64), random_heads(format, 2, 2, 50, 64, 14),
             random_heads(format, 2, 2, 50, 64, 15), Heads(format, 2, 2, 1, 64)};
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t c = 0; c < 64; ++c) first.q.set(i, h, 0, c, bare.at(i, h, 0, c));
  const Result some = forward(kernels, first), every = forward(kernels, all);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t c = 0; c < 128; ++c) ASSERT_EQ(some.out[i * 128 + c], every.out[i * 50 * 128 + c]);
}

TEST_P(Attention, NanReachesOnlyItsHead) {
  Case c = random_case({1, 2, 20, 20, 32}, 17);
  c.k.set(0, 1, 4, 3, std::numeric_limits<float>::quiet_NaN());
  const Result found = forward(kernels, c);
  for (int64_t t = 0; t < 20; ++t)
    for (int64_t column = 0; column < 64; ++column)
      ASSERT_EQ(std::isnan(found.out[t * 64 + column]), column >= 32);
}

INSTANTIATE_TEST_SUITE_P(Sets, Attention, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

// The formulas themselves, against differences of the forward.
TEST(AttentionReference, BackwardIsTheDerivativeOfForward) {
  const Sizes s{1, 1, 3, 4, 32};
  const KernelSet& reference = reference_kernels(Format::kF32);
  Heads parts[3] = {random_heads(Format::kF32, 1, 1, s.queries, s.width, 1, 0.2f),
                    random_heads(Format::kF32, 1, 1, s.tokens, s.width, 2),
                    random_heads(Format::kF32, 1, 1, s.tokens, s.width, 3)};
  const Heads dout = random_heads(Format::kF32, 1, 1, s.queries, s.width, 4);
  std::vector<float> sums(s.queries);
  const auto loss = [&] {
    Activations out(Format::kF32, s.queries, s.width);
    attention_forward(reference, {&parts[0], &parts[1], &parts[2], 1}, out, sums.data());
    double total = 0;
    for (int64_t t = 0; t < s.queries; ++t)
      for (int64_t c = 0; c < s.width; ++c) total += double{out.at(t, c)} * dout.at(0, 0, t, c);
    return total;
  };
  loss();
  Activations gradients[3] = {Activations(Format::kF32, s.queries, s.width),
                              Activations(Format::kF32, s.tokens, s.width),
                              Activations(Format::kF32, s.tokens, s.width)};
  attention_backward(reference, {&parts[0], &parts[1], &parts[2], 1},
                     {&dout, sums.data(), &gradients[0], 0, &gradients[1], 0, &gradients[2], 0});
  // Central differences with h = 2^-6: error h^2 / 6 of the third derivative, and float32 storage of the
  // results: 1e-7 * |dout| sqrt(n) / h ~ 1e-4.
  constexpr float kStep = 0x1p-6f;
  for (int part = 0; part < 3; ++part)
    for (int64_t t = 0; t < parts[part].tokens(); ++t)
      for (int64_t c = 0; c < s.width; c += 5) {
        const float before = parts[part].at(0, 0, t, c);
        parts[part].set(0, 0, t, c, before + kStep);
        const double above = loss();
        parts[part].set(0, 0, t, c, before - kStep);
        const double below = loss();
        parts[part].set(0, 0, t, c, before);
        EXPECT_NEAR(gradients[part].at(t, c), (above - below) / (2 * kStep), 2e-3) << "part " << part;
      }
}

}  // namespace
}  // namespace aha
