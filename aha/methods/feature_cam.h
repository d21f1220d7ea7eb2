// Maps from what enters a ConvNet's pooling: one forward pass for the features. Behind them there is only
// pooling, norm and head, so that their gradient needs no backward pass of the network.
#pragma once

#include <functional>

#include "aha/networks/classifier.h"

namespace aha {

// features, gradients (1, C, h, w) -> (1, h, w); cam_maps.h has them.
using RawCam = Tensor (*)(const Tensor& features, const Tensor& gradients);

// (B, H, W), finished (patch_maps.h). An image's map does not depend on its batch mates.
Tensor feature_cam(Classifier& target, const Tensor& pixels, const Tensor& classes, RawCam raw);

// Any formula of one image's features (values_per_image, attribution/cam.h), finished.
Tensor feature_cam(Classifier& target, const Tensor& pixels,
                   const std::function<Tensor(int64_t b, const Tensor& features)>& raw);

}  // namespace aha
