// Generic attention attribution (Chefer et al., ICCV 2021) of a target with attention: on the fast engine
// where it has one, else through libtorch (attention_maps.h has the formula).
#pragma once

#include "aha/networks/classifier.h"

namespace aha {

// pixels (B, 3, H, W), classes (B) -> one value per patch, (B, n), row-major. An image's values do not depend
// on its batch mates.
Tensor chefer_values(Classifier& target, const Tensor& pixels, const Tensor& classes);

}  // namespace aha
