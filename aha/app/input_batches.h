// Images as a network's input, batch after batch. Decoding runs ahead of the network; memory does not grow
// with the number of images.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aha/data/prefetch.h"
#include "aha/networks/classifier.h"

namespace aha {

struct InputBatches {
  std::string title;  // of the progress
  int64_t count = 0, batch = 1;
  std::function<Image(int64_t)> image;
};

// work(first index of the batch, pixels (B, 3, size, size) on the context's device)
inline void for_input_batches(const InputBatches& inputs, const InputSpec& spec, const Context& context,
                              const std::function<void(int64_t first, const Tensor& pixels)>& work) {
  const int64_t count = inputs.count, batch = inputs.batch;
  Prefetch<Tensor> ahead(count, 2, 2 * batch,
                         [&](int64_t i) { return input_from_image(inputs.image(i), spec); });
  auto progress = context.progress(inputs.title, count);
  for (int64_t first = 0; first < count; first += batch) {
    context.cancel->check();
    std::vector<Tensor> rows;  // each (3, size, size)
    for (int64_t i = first; i < std::min(first + batch, count); ++i) rows.push_back(*ahead.next());
    work(first, torch::stack(rows).to(torch_device(context)));
    progress.advance(static_cast<int64_t>(rows.size()));
  }
}

}  // namespace aha
