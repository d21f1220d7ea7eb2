// Which part of an image a network sees: resizing and cropping, forward and back.
#pragma once

#include "aha/image/box.h"
#include "aha/networks/classifier.h"

namespace aha {

// An image on its way to the network's input, as image/resize.h has it.
struct InputPlacement {
  int width = 0, height = 0;  // after resizing
  double left = 0, top = 0;   // corner of the crop in that; below 0 where the crop is padded
};
InputPlacement input_placement(int width, int height, const InputSpec& spec);

// In pixels of an image of this size. It reaches beyond the border where the crop is padded.
Box seen_part(int width, int height, const InputSpec& spec);

}  // namespace aha
