// Images as a network's input, batch after batch. Decoding runs ahead of the network; memory does not grow
// with the number of images. An image that cannot be read is handed out with the reason in its place.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/data/prefetch.h"
#include "aha/networks/classifier.h"

namespace aha {

struct InputBatches {
  std::string title;  // of the progress
  int64_t count = 0, batch = 1;
  std::function<Image(int64_t)> image;
  bool strict = false;  // the first image that cannot be read ends the work
};

struct InputBatch {
  std::vector<int64_t> indices;  // of the images that could be read, ascending
  Tensor pixels;                 // (B, 3, size, size) on the context's device; undefined where B = 0
  std::map<int64_t, std::string> failures;  // why the others could not
};

// Says on stderr why an image is left out, with its name.
inline void tell_failure(const std::string& image, const std::string& reason) {
  if (reason.find(image) == std::string::npos)
    spdlog::error("{}: {}", printable(image, 300), reason);
  else
    spdlog::error("{}", reason);
}

inline void for_input_batches(const InputBatches& inputs, const InputSpec& spec, const Context& context,
                              const std::function<void(InputBatch&)>& work) {
  struct Read {
    Tensor pixels;  // (3, size, size)
    std::string failure;
  };
  const int64_t count = inputs.count, batch = inputs.batch;
  Prefetch<Read> ahead(count, 2, 2 * batch, [&](int64_t i) -> Read {
    try {
      return {input_from_image(inputs.image(i), spec), ""};
    } catch (const Error& error) {
      if (inputs.strict) throw;
      return {{}, error.what()};
    }
  });
  auto progress = context.progress(inputs.title, count);
  for (int64_t first = 0; first < count; first += batch) {
    context.cancel->check();
    const int64_t last = std::min(first + batch, count);
    InputBatch one;
    std::vector<Tensor> rows;  // each (3, size, size)
    for (int64_t i = first; i < last; ++i) {
      Read read = *ahead.next();
      if (!read.failure.empty()) {
        one.failures[i] = std::move(read.failure);
        continue;
      }
      one.indices.push_back(i);
      rows.push_back(std::move(read.pixels));
    }
    if (!rows.empty()) one.pixels = torch::stack(rows).to(torch_device(context));
    work(one);
    progress.advance(last - first);
  }
}

}  // namespace aha
