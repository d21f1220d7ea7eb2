// The records of metrics that have a file of their own (catalog.cpp lists them), and what these files share.
#pragma once

#include "aha/metrics/metric.h"

namespace aha {

MetricRecord adp_metric();
MetricRecord pic_metric();

// A map scaled to 0..1 by its own least and greatest value; a constant one becomes 0. (H, W), contiguous
// float32.
Tensor scaled_to_unit(const Tensor& map);

}  // namespace aha
