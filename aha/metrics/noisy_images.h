// Images with noise of their own stream, for metrics that explain neighbors of an image.
#pragma once

#include "aha/metrics/metric.h"

namespace aha {

// Sample i of every image, (B, 3, H, W) within [0, 1]; depends on (seed, purpose, the image's stream, i)
// alone.
Tensor with_uniform_noise(const MetricImages& images, double radius, uint64_t seed, uint64_t purpose, int i);
Tensor with_normal_noise(const MetricImages& images, double deviation, uint64_t seed, uint64_t purpose,
                         int i);

}  // namespace aha
