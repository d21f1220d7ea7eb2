#include "aha/nn/row_gemm.h"

#include <gtest/gtest.h>

#include "aha/kernels/sets/sets_under_test.h"
#include "aha/tensor/torch.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

class RowGemmOn : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  // Of a whole result: roundings of operands are independent.
  const double tolerance = std::max(1e-6, 3 * checks::rounded_product_deviation(GetParam()->format));
};

Tensor wide(const Tensor& t) {
  return t.to(torch::kFloat64);
}

at::optional<Tensor> wide_if(const Tensor& t) {
  return t.defined() ? at::optional<Tensor>(wide(t)) : at::nullopt;
}

// What `of` makes of all images, of one and of several must be the same bits.
template <class Of>
void expect_no_batch_mates(const Of& of, const Tensor& x, const Tensor& all) {
  for (const int64_t count : {1, 2, 16, 17})
    for (const int64_t first : {int64_t{0}, x.size(0) - count})
      EXPECT_TRUE(torch::equal(of(x.narrow(0, first, count)), all.narrow(0, first, count)))
          << count << " from " << first;
}

TEST_P(RowGemmOn, ALinearMapTakesAnyWidth) {
  torch::manual_seed(7);
  for (const auto& [K, N] : {std::pair<int64_t, int64_t>{7, 3}, {40, 1}, {129, 50}, {64, 32}})
    for (const bool with_bias : {false, true}) {
      SCOPED_TRACE(fmt::format("K {} N {} bias {}", K, N, with_bias));
      const Tensor x = torch::randn({461, K}), weight = torch::randn({N, K}),
                   bias = with_bias ? torch::randn({N}) : Tensor();
      const auto of = [&](const Tensor& rows) { return linear_by_rows(kernels, rows, weight, bias); };
      const Tensor all = of(x);
      EXPECT_LT(relative(all, at::linear(wide(x), wide(weight), wide_if(bias))), tolerance);
      expect_no_batch_mates(of, x, all);
    }
}

TEST_P(RowGemmOn, AConvolutionIsLibtorchs) {
  torch::manual_seed(8);
  for (const auto& [C, N, side] : {std::tuple<int64_t, int64_t, int64_t>{16, 16, 3}, {5, 33, 3}, {32, 1, 1}})
    for (const int64_t stride : {1, 2})
      for (const bool last : {true, false}) {
        SCOPED_TRACE(fmt::format("C {} N {} side {} stride {} channels last {}", C, N, side, stride, last));
        Tensor x = torch::randn({20, C, 9, 8});
        if (last) x = x.contiguous(at::MemoryFormat::ChannelsLast);
        const Tensor weight = torch::randn({N, C, side, side}),
                     bias = stride == 1 ? torch::randn({N}) : Tensor();
        const auto of = [&](const Tensor& maps) {
          return convolution_by_rows(kernels, maps, weight, bias, stride);
        };
        const Tensor all = of(x);
        EXPECT_LT(relative(all, at::conv2d(wide(x), wide(weight), wide_if(bias), stride)), 1e-6);
        EXPECT_TRUE(all.is_contiguous(at::MemoryFormat::ChannelsLast));
        expect_no_batch_mates(of, x, all);
      }
}

TEST(RowGemm, ADepthwiseConvolutionIsLibtorchs) {
  torch::manual_seed(9);
  const std::vector<int64_t> one = {1, 1}, none = {0, 0};
  for (const int64_t C : {3, 16, 40}) {
    const Tensor x = torch::randn({20, C, 9, 7}), weight = torch::randn({C, 1, 3, 3}),
                 bias = C == 16 ? Tensor() : torch::randn({C});
    const auto of = [&](const Tensor& maps) { return depthwise_by_rows(maps, weight, bias); };
    const Tensor all = of(x);
    EXPECT_LT(relative(all, at::conv2d(wide(x), wide(weight), wide_if(bias), one, none, one, C)), 1e-6) << C;
    expect_no_batch_mates(of, x, all);
  }
}

TEST_P(RowGemmOn, AnUpsamplingIsLibtorchsTransposedConvolution) {
  torch::manual_seed(10);
  for (const int64_t s : {2, 4}) {
    const Tensor x = torch::randn({20, 24, 5, 3}), weight = torch::randn({24, 7, s, s}),
                 bias = s == 2 ? Tensor() : torch::randn({7});
    const auto of = [&](const Tensor& maps) { return upsample_by_rows(kernels, maps, weight, bias); };
    const Tensor all = of(x);
    EXPECT_LT(relative(all, at::conv_transpose2d(wide(x), wide(weight), wide_if(bias), s)), tolerance) << s;
    expect_no_batch_mates(of, x, all);
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, RowGemmOn, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

}  // namespace
}  // namespace aha
