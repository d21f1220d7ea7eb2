#include "aha/networks/input_annotation.h"

#include <gtest/gtest.h>

#include "aha/base/rng.h"

namespace aha {
namespace {

Image painted_box(int width, int height, const Box& box) {
  Image mask(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      if (x >= box.left && x < box.right && y >= box.top && y < box.bottom) mask.row(y)[3 * x + 1] = 1;
  return mask;
}

TEST(InputAnnotation, AMaskKeepsItsValuesAndIsCroppedAsTheImage) {
  InputSpec spec;
  spec.size = 4, spec.resize = 4;
  const Tensor mask = mask_in_input(painted_box(8, 4, {3, 1, 5, 2}), spec);  // columns 2..5 are left
  EXPECT_EQ(mask.scalar_type(), torch::kBool);
  EXPECT_EQ(mask.sum().item<int64_t>(), 2);
  EXPECT_TRUE(mask[1][1].item<bool>() && mask[1][2].item<bool>());
}

TEST(InputAnnotation, BoxesGoWhereTheirPaintedMasksGo) {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    const int width = 20 + static_cast<int>(rng.below(200)), height = 20 + static_cast<int>(rng.below(200));
    InputSpec spec;
    spec.size = 40;
    spec.rule = rng.below(2) ? ResizeRule::kShortSide : ResizeRule::kStretch;
    spec.resize = spec.rule == ResizeRule::kStretch ? 40 : 30 + static_cast<int>(rng.below(40));
    const double left = static_cast<double>(rng.below(width - 4)),
                 top = static_cast<double>(rng.below(height - 4));
    const Box box{left, top, left + 4 + static_cast<double>(rng.below(width - 3 - static_cast<int>(left))),
                  top + 4 + static_cast<double>(rng.below(height - 3 - static_cast<int>(top)))};
    const Tensor mask = mask_in_input(painted_box(width, height, box), spec);
    const auto boxes = boxes_in_input({box}, width, height, spec);
    if (!mask.any().item<bool>()) continue;
    ASSERT_EQ(boxes.size(), 1u) << width << " x " << height;
    const Tensor rows = torch::nonzero(mask.any(1)), columns = torch::nonzero(mask.any(0));
    // A pixel shows what lies under its center: at most one pixel beside the exact edge.
    EXPECT_NEAR(boxes[0].left, columns.min().item<double>(), 1);
    EXPECT_NEAR(boxes[0].right, columns.max().item<double>() + 1, 1);
    EXPECT_NEAR(boxes[0].top, rows.min().item<double>(), 1);
    EXPECT_NEAR(boxes[0].bottom, rows.max().item<double>() + 1, 1);
  }
}

TEST(InputAnnotation, ABoxOutsideTheCropIsDropped) {
  InputSpec spec;
  spec.size = 10, spec.resize = 10;
  EXPECT_TRUE(boxes_in_input({{0, 0, 4, 10}}, 30, 10, spec).empty());  // columns 10..19 are left
  EXPECT_EQ(boxes_in_input({{5, 2, 15, 8}}, 30, 10, spec), (std::vector<Box>{{0, 2, 5, 8}}));
}

}  // namespace
}  // namespace aha
