// The decoder's projections on the fast kernels. What the decoder computes is tested with the explainer.
#include "aha/explainer/dpt.h"

#include <gtest/gtest.h>

#include "aha/tensor/torch.h"

#include "aha/kernels/sets/sets_under_test.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

constexpr int64_t kImages = 3, kSide = 28;

Decoder made(int channels) {
  DecoderOptions o;
  o.widths = {64, 96, 160};
  o.scales = {2, 1, -2};
  o.classes = 5;
  o.embedding = 24;  // need not be a multiple of 32
  o.channels = channels;
  o.top = o.head = 16;
  torch::manual_seed(1);
  Decoder decoder(o);
  decoder->eval();
  return decoder;
}

// As tokens of a transformer come, channels last.
std::vector<Tensor> random_levels() {
  torch::manual_seed(2);
  std::vector<Tensor> levels;
  for (const int64_t width : {64, 96, 160})
    levels.push_back(torch::randn({kImages, 49, width}).transpose(1, 2).unflatten(2, {7, 7}));
  return levels;
}

Tensor rounded(const Tensor& x) {
  return x.to(torch::kBFloat16).to(torch::kFloat32);
}

struct Result {
  Tensor map;  // around its mean, which the last bias makes
  std::vector<std::pair<std::string, Tensor>> gradients;
};

Result result_of(Decoder& decoder, const std::vector<Tensor>& levels) {
  torch::manual_seed(3);
  decoder->zero_grad();
  const Tensor map = decoder->forward(levels, torch::tensor({0, 4, 2}), kSide, kSide);
  (map * torch::randn(map.sizes()).to(map.scalar_type())).sum().backward();
  Result result{(map - map.mean()).detach(), {}};
  for (auto& item : decoder->named_parameters())
    result.gradients.emplace_back(item.key(), item.value().grad().clone());
  return result;
}

class DecoderOn : public ::testing::TestWithParam<const KernelSet*> {};

// In float64.
Result exact_result_of(const Decoder& decoder, std::vector<Tensor> levels) {
  Decoder wide(std::dynamic_pointer_cast<DecoderImpl>(decoder->clone()));
  wide->to(torch::kFloat64);
  for (Tensor& level : levels) level = level.to(torch::kFloat64);
  return result_of(wide, levels);
}

double distance(const Tensor& found, const Tensor& exact) {
  return relative(found.to(torch::kFloat64), exact);
}

// Libtorch gets the rounded operands, so that all but the gradient of a projection's weights, which sees a
// rounded gradient of its outputs too, is as near to float64 as libtorch's float32 is.
TEST_P(DecoderOn, ProjectionsOnTheFastKernelsGiveLibtorchsMapsAndGradients) {
  const Format format = GetParam()->format;
  Decoder decoder = made(32);
  std::vector<Tensor> levels = random_levels();
  if (format == Format::kBf16) {
    const torch::NoGradGuard no_grad;
    for (Tensor& level : levels) level = rounded(level);
    for (size_t k = 0; k < levels.size(); ++k) {
      auto used = decoder->proj[k]->as<torch::nn::Linear>()->weight.slice(1, 0, levels[k].size(1));
      used.copy_(rounded(used));
    }
  }
  const Result exact = exact_result_of(decoder, levels), libtorch = result_of(decoder, levels);
  decoder->set_kernels(GetParam());
  const Result found = result_of(decoder, levels);
  // What float32 costs libtorch it may cost here; pairs of bf16 drop 2^-17 of an operand.
  constexpr double kTimes = 4;
  const double pairs = format == Format::kBf16Pair ? checks::rounded_product_deviation(format) : 0;
  EXPECT_LT(distance(found.map, exact.map), kTimes * (distance(libtorch.map, exact.map) + pairs));
  double largest = 0;
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    const auto& [name, gradient] = exact.gradients[i];
    const bool of_rounded = name.starts_with("proj.") && name.ends_with("weight");
    const double difference = distance(found.gradients[i].second, gradient),
                 usual = distance(libtorch.gradients[i].second, gradient);
    EXPECT_LT(difference, kTimes * (usual + pairs) + (of_rounded ? checks::rounding_deviation(format) : 0))
        << name << ", libtorch's float32 " << usual;
    largest = std::max(largest, difference);
  }
  if (format == Format::kBf16) {
    EXPECT_GT(largest, 0.3 * checks::rounding_deviation(format)) << "nothing was rounded";
  }
  Decoder copy(std::dynamic_pointer_cast<DecoderImpl>(decoder->clone()));
  EXPECT_TRUE(torch::equal(result_of(copy, levels).map, found.map)) << "a copy keeps its kernels";
}

INSTANTIATE_TEST_SUITE_P(Sets, DecoderOn, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

TEST(Decoder, ItsPrecisionChoosesTheKernels) {
  Decoder decoder = made(32);
  const auto levels = random_levels();
  const Tensor plain = result_of(decoder, levels).map;
  decoder->set_kernels(&best_kernel_set(Precision::kBf16));
  const Tensor fast = result_of(decoder, levels).map;
  decoder->set_precision(Precision::kF32);
  EXPECT_TRUE(torch::equal(result_of(decoder, levels).map, plain));
  decoder->set_precision(Precision::kBf16);
  EXPECT_TRUE(torch::equal(result_of(decoder, levels).map, fast));
}

// libtorch chooses other convolutions for one image, and other products for 16 and more: none of them may
// show.
TEST(Decoder, AMapDoesNotDependOnItsBatchMates) {
  constexpr int64_t kMany = 35;
  for (const char* padding : {"zeros", "replicate"})
    for (const int channels : {16, 32}) {
      DecoderOptions o;
      o.widths = {128, 128, 64};
      o.scales = {2, 1, -2};
      o.classes = 5;
      o.embedding = 24;
      o.channels = channels;
      o.top = o.head = 16;
      o.level_norm = o.class_dot = true;
      o.padding = padding;
      torch::manual_seed(1);
      Decoder decoder(o);
      decoder->eval();
      std::vector<Tensor> levels;
      for (const int width : o.widths)
        levels.push_back(torch::randn({kMany, 64, width}).transpose(1, 2).unflatten(2, {8, 8}));
      const Tensor classes = torch::arange(kMany) % 5;
      const auto maps_of = [&](int64_t first, int64_t count) {
        std::vector<Tensor> some;
        for (const Tensor& level : levels) some.push_back(level.narrow(0, first, count));
        return decoder->forward(some, classes.narrow(0, first, count), 32, 32);
      };
      const Tensor trained = maps_of(0, kMany).detach();  // the way with a gradient
      const torch::NoGradGuard no_grad;
      const Tensor all = maps_of(0, kMany);
      EXPECT_LT(relative(all - all.mean(), trained - trained.mean()), 1e-4);
      for (const int64_t count : {1, 2, 15, 16, 17})
        for (int64_t first = 0; first + count <= kMany; first += count)
          ASSERT_TRUE(torch::equal(maps_of(first, count), all.narrow(0, first, count)))
              << padding << ", " << channels << " channels, " << count << " images from " << first;
    }
}

TEST(Decoder, WidthsThatDoNotFitStayOnLibtorch) {
  Decoder decoder = made(24);
  const auto levels = random_levels();
  const Tensor plain = result_of(decoder, levels).map;
  decoder->set_precision(Precision::kBf16);
  EXPECT_TRUE(torch::equal(result_of(decoder, levels).map, plain));
}

}  // namespace
}  // namespace aha
