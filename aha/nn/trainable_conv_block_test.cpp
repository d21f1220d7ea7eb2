#include "aha/nn/trainable_conv_block.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/nn/conv_block.h"
#include "aha/nn/trainable_testing.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::BlockResult;
using checks::relative;
using checks::result_of;
using checks::tolerance_of;

constexpr int64_t kWidth = 32;

ConvBlock random_conv_block(int64_t width) {
  ConvBlock block(width);
  checks::randomize(*block);
  return block;
}

constexpr int64_t kProductsOfBlock = 2;

class TrainableConvBlockOn : public ::testing::TestWithParam<const KernelSet*> {};

TEST_P(TrainableConvBlockOn, OutputsAndAllGradientsEqualThePlainBlocks) {
  struct Case {
    int64_t images, height, width, channels;
    bool channels_last;
  };
  for (const Case& c :
       {Case{3, 8, 8, 64, true}, {9, 5, 3, 32, true}, {2, 16, 17, 32, false}, {1, 1, 1, 96, true}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {} x {}", c.images, c.height, c.width, c.channels));
    ConvBlock block = random_conv_block(c.channels);
    torch::manual_seed(1);
    const auto memory = c.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const Tensor x = torch::randn({c.images, c.channels, c.height, c.width}).contiguous(memory),
                 upstream = torch::randn_like(x);
    TrainableConvBlock fast(c.channels, 1e-6, *GetParam());
    const BlockResult expected =
        result_of(*block, x, upstream, [&](const Tensor& in) { return block->forward_plain(in); });
    const BlockResult found =
        result_of(*block, x, upstream, [&](const Tensor& in) { return fast.forward(in, block->weights()); });
    // The pixels themselves are not rounded, only what is added to them.
    const double added = relative(x, expected.out);
    EXPECT_LT(relative(found.out, expected.out),
              tolerance_of(GetParam()->format, kProductsOfBlock, 4 * c.channels) * added);
    ASSERT_EQ(found.gradients.size(), expected.gradients.size());
    for (size_t i = 0; i < expected.gradients.size(); ++i)
      EXPECT_LT(relative(found.gradients[i].second, expected.gradients[i].second),
                tolerance_of(GetParam()->format, 2 * kProductsOfBlock, 4 * c.channels))
          << expected.gradients[i].first;
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(fast.forward(x, block->weights()), found.out)) << "with and without a gradient";
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, TrainableConvBlockOn, ::testing::ValuesIn(checks::sets_to_test()),
                         checks::set_name);

TEST(TrainableConvBlock, GradientsAreDerivatives) {
  ConvBlock block = random_conv_block(kWidth);
  TrainableConvBlock fast(kWidth, 1e-6, reference_kernels(Format::kF32));
  torch::manual_seed(2);
  const Tensor x = torch::randn({2, kWidth, 3, 4}), upstream = torch::randn_like(x);
  checks::expect_gradients_are_derivatives(
      *block, x, upstream, [&](const Tensor& in) { return fast.forward(in, block->weights()); });
}

TEST(TrainableConvBlock, AnyNumberOfThreadsGivesTheSameBits) {
  ConvBlock block = random_conv_block(kWidth);
  torch::manual_seed(3);
  const Tensor x = torch::randn({19, kWidth, 4, 4}),
               upstream = torch::randn_like(x);  // six chunks of 3 and one of 1
  TrainableConvBlock fast(kWidth, 1e-6, best_kernel_set(Precision::kF32));
  const auto run = [&](int threads) {
    set_threads(threads);
    return result_of(*block, x, upstream,
                     [&](const Tensor& in) { return fast.forward(in, block->weights()); });
  };
  const BlockResult one = run(1);
  for (int threads : {2, 3}) checks::expect_equal_bits(run(threads), one);
  set_threads(0);
}

TEST(TrainableConvBlock, AKeptGraphGivesTheSameGradientAgain) {
  ConvBlock block = random_conv_block(kWidth);
  torch::manual_seed(4);
  const Tensor x = torch::randn({4, kWidth, 4, 4}).requires_grad_();
  TrainableConvBlock fast(kWidth, 1e-6, best_kernel_set(Precision::kF32));
  const Tensor out = fast.forward(x, block->weights()).square().sum();
  const Tensor first = torch::autograd::grad({out}, {x}, {}, true)[0];
  fast.forward(torch::randn({4, kWidth, 4, 4}), block->weights());  // takes no memory that is still in use
  EXPECT_TRUE(torch::equal(torch::autograd::grad({out}, {x})[0], first));
}

TEST(TrainableConvBlock, RefusesWhatItCannotMultiply) {
  EXPECT_FALSE(TrainableConvBlock::fits(48));
  EXPECT_THROW(TrainableConvBlock(48, 1e-6, best_kernel_set(Precision::kF32)), Error);
  ConvBlock block = random_conv_block(kWidth);
  TrainableConvBlock fast(kWidth, 1e-6, best_kernel_set(Precision::kF32));
  EXPECT_THROW(fast.forward(torch::zeros({1, 64, 4, 4}), block->weights()), Error);
  EXPECT_THROW(fast.forward(torch::zeros({1, kWidth, 4, 4}, torch::kFloat64), block->weights()), Error);
}

// The block itself chooses: fast while it learns, plain where its width does not fit and where it is frozen.
TEST(ConvBlock, ALearningBlockEqualsTheFrozenOne) {
  ConvBlock block = random_conv_block(kWidth);
  torch::manual_seed(5);
  const Tensor x = torch::randn({2, kWidth, 5, 5});
  const Tensor fast = block->forward(x).detach();
  for (auto& parameter : block->parameters()) parameter.requires_grad_(false);
  const Tensor plain = block->forward(x);
  EXPECT_FALSE(torch::equal(fast, plain)) << "the fast way was not taken";
  EXPECT_LT(relative(fast, plain), 1e-4);
}

}  // namespace
}  // namespace aha
