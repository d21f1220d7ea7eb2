#include "aha/nn/trainable_block.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/nn/trainable_testing.h"
#include "aha/nn/transformer_block.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::BlockResult;
using checks::relative;
using checks::result_of;
using checks::tolerance_of;

struct Case {
  const char* name;
  int64_t images, tokens, first_tokens;
  bool layer_scale;
  int64_t prefix = -1;  // tokens before those with rotary positions; -1 = no rotary positions
  bool swiglu = false;
};
constexpr Case kCases[] = {{"all tokens", 3, 17, 0, false},
                           {"layer scale", 9, 5, 0, true},
                           {"class token alone", 3, 9, 1, false},
                           {"two of the tokens, layer scale", 2, 33, 2, true},
                           {"rotary positions behind registers", 3, 14, 0, true, 5},
                           {"rotary positions everywhere", 2, 9, 0, false, 0},
                           {"rotary positions, class token alone", 3, 9, 1, true, 5},
                           {"rotary positions of some that ask", 3, 9, 4, false, 2},
                           {"swiglu", 3, 17, 0, false, -1, true},
                           {"rotary positions, swiglu, class token alone", 3, 9, 1, true, 5, true}};

constexpr int64_t D = 64, F = 96, kHeadWidth = 32;

TransformerBlock random_block(bool layer_scale, bool swiglu = false) {
  TransformerBlock block(TransformerBlockOptions{D, 2, F, 1e-6, layer_scale, swiglu});
  checks::randomize(*block);
  return block;
}

// Angles that differ in every channel: taking one half's for the other's shows.
RopeTable random_rope(int64_t places) {
  const Tensor angles = 3 * torch::randn({places, kHeadWidth});
  return {angles.cos(), angles.sin()};
}

// Rounded results in a row: query, key, value; their turn; scores; weighted values; projection; two of the
// MLP, and what SwiGLU multiplies. The backward pass goes through them once more.
int64_t results_in_a_row(const Case& c) {
  return 6 + (c.prefix >= 0 ? 1 : 0) + (c.swiglu ? 1 : 0);
}

class TrainableBlockOn : public ::testing::TestWithParam<const KernelSet*> {};

TEST_P(TrainableBlockOn, OutputsAndAllGradientsEqualThePlainBlocks) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    TransformerBlock block = random_block(c.layer_scale, c.swiglu);
    torch::manual_seed(1);
    const RopeTable table = random_rope(c.tokens - std::max<int64_t>(0, c.prefix));
    const RopeTable* rope = c.prefix >= 0 ? &table : nullptr;
    const int64_t queries = c.first_tokens > 0 ? c.first_tokens : c.tokens;
    const Tensor x = torch::randn({c.images, c.tokens, D}), upstream = torch::randn({c.images, queries, D});
    TrainableBlock fast(block->fast_options(), *GetParam());
    const BlockResult expected = result_of(*block, x, upstream, [&](const Tensor& in) {
      return block->forward_plain(in, rope).slice(1, 0, queries);
    });
    const BlockResult found = result_of(*block, x, upstream, [&](const Tensor& in) {
      return fast.forward(in, block->weights(), c.first_tokens, rope);
    });
    const double most = tolerance_of(GetParam()->format, 2 * results_in_a_row(c), F);
    // The tokens themselves are not rounded, only what is added to them.
    const double added = relative(x.slice(1, 0, queries), expected.out);
    EXPECT_LT(relative(found.out, expected.out),
              tolerance_of(GetParam()->format, results_in_a_row(c), F) * added);
    ASSERT_EQ(found.gradients.size(), expected.gradients.size());
    for (size_t i = 0; i < expected.gradients.size(); ++i) {
      Tensor a = found.gradients[i].second, b = expected.gradients[i].second;
      // Keys all shifted by the same vector change no softmax: the gradient of their bias is 0 up to
      // rounding. Turned keys are not all shifted by the same.
      if (expected.gradients[i].first == "attn.qkv.bias" && !rope) {
        EXPECT_LT(a.slice(0, D, 2 * D).norm().item<double>(), most * b.norm().item<double>());
        a = torch::cat({a.slice(0, 0, D), a.slice(0, 2 * D)});
        b = torch::cat({b.slice(0, 0, D), b.slice(0, 2 * D)});
      }
      EXPECT_LT(relative(a, b), most) << expected.gradients[i].first;
    }
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(fast.forward(x, block->weights(), c.first_tokens, rope), found.out))
        << "with and without a gradient";
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, TrainableBlockOn, ::testing::ValuesIn(checks::sets_to_test()),
                         checks::set_name);

TEST(TrainableBlock, GradientsAreDerivatives) {
  for (const bool modern : {false, true}) {  // rotary positions and SwiGLU
    TransformerBlock block = random_block(true, modern);
    TrainableBlock fast(block->fast_options(), reference_kernels(Format::kF32));
    torch::manual_seed(2);
    const Tensor x = torch::randn({2, 3, D}), upstream = torch::randn({2, 3, D});
    const RopeTable rope = random_rope(2);
    checks::expect_gradients_are_derivatives(*block, x, upstream, [&](const Tensor& in) {
      return fast.forward(in, block->weights(), 0, modern ? &rope : nullptr);
    });
  }
}

TEST(TrainableBlock, AnyNumberOfThreadsGivesTheSameBits) {
  TransformerBlock block = random_block(true, true);
  torch::manual_seed(3);
  const RopeTable rope = random_rope(1);
  // 19 images are six chunks of 3 and one of 1; 1090 are 18 chunks of at most 64, more than there are partial
  // sums.
  for (const auto& [images, tokens] : {std::pair<int64_t, int64_t>{19, 6}, {1090, 2}})
    for (int64_t first_tokens : {0, 1}) {
      const Tensor x = torch::randn({images, tokens, D}),
                   upstream = torch::randn({images, first_tokens > 0 ? first_tokens : tokens, D});
      TrainableBlock fast(block->fast_options(), best_kernel_set(Precision::kF32));
      const auto run = [&](int threads) {
        set_threads(threads);
        return result_of(*block, x, upstream, [&](const Tensor& in) {
          return fast.forward(in, block->weights(), first_tokens, &rope);
        });
      };
      const BlockResult one = run(1);
      for (int threads : {2, 3}) checks::expect_equal_bits(run(threads), one);
      set_threads(0);
    }
}

TEST(TrainableBlock, AKeptGraphGivesTheSameGradientAgain) {
  TransformerBlock block = random_block(false);
  torch::manual_seed(4);
  const Tensor x = torch::randn({4, 7, D}).requires_grad_();
  TrainableBlock fast({D, 2, F, 1e-6}, best_kernel_set(Precision::kF32));
  const Tensor out = fast.forward(x, block->weights()).square().sum();
  const Tensor first = torch::autograd::grad({out}, {x}, {}, true)[0];
  fast.forward(torch::randn({4, 7, D}), block->weights());  // takes no memory that is still in use
  EXPECT_TRUE(torch::equal(torch::autograd::grad({out}, {x})[0], first));
}

TEST(TrainableBlock, RefusesWhatItCannotMultiply) {
  EXPECT_FALSE(TrainableBlock::fits({48, 2, 96}));
  EXPECT_FALSE(TrainableBlock::fits({64, 4, 96}));
  EXPECT_FALSE(TrainableBlock::fits({64, 2, 100}));
  EXPECT_THROW(TrainableBlock({64, 4, 96}, best_kernel_set(Precision::kF32)), Error);
  TransformerBlock block = random_block(false);
  TrainableBlock fast({D, 2, F, 1e-6}, best_kernel_set(Precision::kF32));
  EXPECT_THROW(fast.forward(torch::zeros({1, 2, 32}), block->weights()), Error);
  EXPECT_THROW(fast.forward(torch::zeros({1, 2, D}), block->weights(), 3), Error);
  const RopeTable longer = random_rope(3);
  EXPECT_THROW(fast.forward(torch::zeros({1, 2, D}), block->weights(), 0, &longer), Error);
}

// The class of a learning block chooses by what is asked of it.
TEST(TransformerBlock, ALearningBlockCanStillBeLookedInto) {
  TransformerBlock block = random_block(false);
  torch::manual_seed(5);
  const Tensor x = torch::randn({2, 5, D});
  Taps inside({"b.attention", "b"}), outside({"b"});
  const RopeTable rope = random_rope(4);
  const Tensor plain = block->forward(x, &rope, &inside, "b"), fast = block->forward(x, &rope, &outside, "b");
  EXPECT_FALSE(torch::equal(fast, plain)) << "both ran on libtorch";
  EXPECT_LT(relative(fast, plain), 1e-4);
  EXPECT_TRUE(torch::equal(outside.at("b"), fast));
  const auto gradient = torch::autograd::grad({plain.sum()}, {inside.at("b.attention")})[0];
  EXPECT_EQ(gradient.sizes(), (std::vector<int64_t>{2, 2, 5, 5}));
  EXPECT_GT(gradient.norm().item<double>(), 0);
}

}  // namespace
}  // namespace aha
