#include "aha/networks/seen_part.h"

#include "aha/tensor/torch.h"

#include <gtest/gtest.h>

#include "aha/networks/input_annotation.h"

namespace aha {
namespace {

InputSpec spec_of(ResizeRule rule, int resize, int size, bool crop) {
  InputSpec spec;
  spec.rule = rule;
  spec.resize = resize;
  spec.size = size;
  spec.crop = crop;
  return spec;
}

// A white square on black goes to where seen_part() says that it came from.
TEST(SeenPart, IsTheInverseOfResizingAndCropping) {
  struct Case {
    int width, height;
    InputSpec spec;
  };
  const Case cases[] = {
      {300, 200, spec_of(ResizeRule::kShortSide, 64, 56, true)},
      {200, 300, spec_of(ResizeRule::kShortSide, 64, 56, true)},
      {401, 133, spec_of(ResizeRule::kShortSide, 70, 63, true)},
      {300, 200, spec_of(ResizeRule::kStretch, 56, 56, false)},
      {300, 200, spec_of(ResizeRule::kStretch, 64, 56, true)},
      {120, 90, spec_of(ResizeRule::kNone, 0, 56, true)},
      {50, 40, spec_of(ResizeRule::kNone, 0, 56, true)},  // padded
      {120, 90, spec_of(ResizeRule::kShortSide, 40, 56, true)},
  };
  for (const auto& [width, height, spec] : cases) {
    SCOPED_TRACE(fmt::format("{} x {} to {}, {}", width, height, spec.resize, spec.size));
    const int cx = width * 2 / 5, cy = height * 3 / 5, half = 6;
    Image photo(width, height);
    for (int y = cy - half; y < cy + half; ++y)
      for (int x = cx - half; x < cx + half; ++x)
        for (int c = 0; c < 3; ++c) photo.row(y)[3 * x + c] = 255;
    const Tensor seen = input_from_image(photo, spec)[0].to(torch::kFloat64);  // (size, size)
    const auto centers = torch::arange(spec.size, torch::kFloat64) + 0.5;
    const double total = seen.sum().item<double>(), x = (seen.sum(0) * centers).sum().item<double>() / total,
                 y = (seen.sum(1) * centers).sum().item<double>() / total;
    const Box part = seen_part(width, height, spec);
    EXPECT_NEAR(part.left + x / spec.size * (part.right - part.left), cx, 0.5);
    EXPECT_NEAR(part.top + y / spec.size * (part.bottom - part.top), cy, 0.5);
    const auto back = boxes_in_input({part}, width, height, spec);
    ASSERT_EQ(back.size(), 1u);
    EXPECT_NEAR(back[0].left, 0, 1e-9);
    EXPECT_NEAR(back[0].bottom, spec.size, 1e-9);
  }
}

}  // namespace
}  // namespace aha
