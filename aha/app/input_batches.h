// Images as a network's input, batch after batch. Decoding runs ahead of the network; memory does not grow
// with the number of images.
#pragma once

#include <functional>

#include "aha/networks/classifier.h"

namespace aha {

struct InputBatches {
  std::string title;  // of the progress
  int64_t count = 0, batch = 1;
  std::function<Image(int64_t)> image;
};

// work(first index of the batch, pixels (B, 3, size, size) on the context's device)
void for_input_batches(const InputBatches& inputs, const InputSpec& spec, const Context& context,
                       const std::function<void(int64_t first, const Tensor& pixels)>& work);

}  // namespace aha
