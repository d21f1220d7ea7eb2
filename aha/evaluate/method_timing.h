// How long each method takes for one image at a time.
#pragma once

#include "aha/evaluate/image_batch.h"
#include "aha/evaluate/row_store.h"

namespace aha {

// Asks for `runs` maps after one to warm up, image after image of the batch; fewer where they take long. What
// warms up counts only where it alone takes long. runs = 0 where the method fails.
Timing time_method(Method& method, const ImageBatch& batch, const Tensor& classes, int runs,
                   const Context& context);

}  // namespace aha
