#include "aha/tensor/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "aha/base/error.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using checks::message_of;

TEST(CheckShape, SaysWhatItExpectedAndWhatItFound) {
  const auto map = torch::zeros({1, 32, 32});
  check_shape(map, {-1, 32, 32}, "map");
  EXPECT_EQ(message_of([&] {
              check_shape(map, {-1, 224, 224}, "map");
            }),
            "map: expected shape [any, 224, 224], found [1, 32, 32]");
  EXPECT_EQ(message_of([&] {
              check_shape(map, {-1, 32}, "map");
            }),
            "map: expected shape [any, 32], found [1, 32, 32]");
  EXPECT_EQ(message_of([&] { check_shape({}, {2}, "map"); }), "map: expected shape [2], found no tensor");
}

TEST(TensorView, GoesToATensorAndBackInEveryType) {
  for (const auto type : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kHalf,
                          at::kBFloat16, at::kFloat, at::kDouble}) {
    const auto tensor = torch::arange(24).remainder(2).view({2, 3, 4}).to(type);
    const auto back = tensor_from_view(view_from_tensor(tensor.transpose(0, 1)));
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(back.equal(tensor.transpose(0, 1).contiguous())) << c10::toString(type);
    EXPECT_EQ(float_tensor_from_view(view_from_tensor(tensor)).scalar_type(), at::kFloat);
  }
}

TEST(TensorView, MayLieAtAnyAddress) {
  std::vector<std::byte> bytes(1 + 3 * sizeof(float));
  const float values[] = {1, 2, 3};
  std::memcpy(bytes.data() + 1, values, sizeof values);
  TensorView view{DType::kF32, {3}, std::span<const std::byte>(bytes).subspan(1), nullptr};
  EXPECT_TRUE(tensor_from_view(view).equal(torch::tensor({1.f, 2.f, 3.f})));
}

TEST(TensorView, RefusesBytesThatDoNotFitItsShape) {
  std::vector<std::byte> bytes(8);
  const TensorView view{DType::kF32, {3}, bytes, nullptr};
  EXPECT_THAT(message_of([&] { tensor_from_view(view); }), testing::HasSubstr("expected 12 bytes, found 8"));
}

TEST(Image, GoesToPixelsAndBackUnchanged) {
  Image image(16, 16);
  std::iota(image.rgb.begin(), image.rgb.end(), uint8_t{0});
  const auto pixels = tensor_from_image(image);  // (3, H, W)
  EXPECT_EQ(pixels.sizes(), (std::vector<int64_t>{3, 16, 16}));
  EXPECT_FLOAT_EQ(pixels[1][0][2].item<float>(), image.row(0)[2 * 3 + 1] / 255.f);
  EXPECT_EQ(image_from_tensor(pixels).rgb, image.rgb);
  EXPECT_EQ(image_from_tensor(torch::full({3, 1, 1}, 7.0)).rgb[0], 255);
  EXPECT_EQ(image_from_tensor(torch::full({3, 1, 1}, -7.0)).rgb[0], 0);
}

TEST(StartCompute, RefusesACudaDeviceThatIsNotThere) {
  Context context;
  context.device = {true, 99};
  EXPECT_THAT(message_of([&] { start_compute(context); }), testing::HasSubstr("available: cpu"));
}

TEST(StartCompute, GivesLibtorchTheThreadsOfTheTeam) {
  Context context;
  context.threads = 1;
  start_compute(context);
  EXPECT_EQ(at::get_num_threads(), 1);
  context.threads = 0;
  start_compute(context);
}

}  // namespace
}  // namespace aha
