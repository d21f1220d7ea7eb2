// Generic attention attribution (Chefer et al., ICCV 2021) of a target with attention: R = I, then R <- R +
// C_l R for every block; row 0 of R (attention_maps.h has C). On the fast engine where it has one.
#pragma once

#include "aha/attribution/attention_maps.h"
#include "aha/networks/classifier.h"

namespace aha {

// pixels (B, 3, H, W), classes (B) -> one value per patch, (B, n), row-major. An image's values do not depend
// on its batch mates.
Tensor chefer_values(Classifier& target, const Tensor& pixels, const Tensor& classes,
                     HeadRule rule = HeadRule::kMeanFirst);

}  // namespace aha
