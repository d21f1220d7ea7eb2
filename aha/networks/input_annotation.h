// Where the object is, as a network sees it: masks and boxes go through the same resizing and cropping as
// their image. Masks by nearest neighbor; boxes by the sides before and after, cut at the border.
#pragma once

#include <vector>

#include "aha/image/box.h"
#include "aha/networks/classifier.h"

namespace aha {

struct InputAnnotation {
  Tensor mask;             // (H, W) bool: the object; undefined = not known
  std::vector<Box> boxes;  // of the class's objects; empty = not known
};

// mask: of the image's size, 0 = background; (size, size) bool.
Tensor mask_in_input(const Image& mask, const InputSpec& spec);

// Boxes of an image of this size. One that the crop leaves nothing of is dropped.
std::vector<Box> boxes_in_input(const std::vector<Box>& boxes, int width, int height, const InputSpec& spec);

}  // namespace aha
