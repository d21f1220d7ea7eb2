// A random square of an image, at the size of a network's input: few photos become many.
//
// The square's area is drawn evenly from [least_area, 1] of the largest square in the image, its place evenly
// from where it fits. It is resized with the network's own filter, in place of the network's own resize and
// crop.
#pragma once

#include "aha/base/rng.h"
#include "aha/networks/classifier.h"

namespace aha {

Tensor random_view(const Image& image, const InputSpec& input, double least_area,
                   Rng rng);  // (3, size, size)

}  // namespace aha
