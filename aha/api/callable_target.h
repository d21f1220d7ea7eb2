// A classifier that is somebody's function: pixels to logits, and their gradient where there is a function
// for it.
//
// The functions see CPU memory and are called by one thread at a time. Without a gradient function, whoever
// asks for one gets an input error that says so.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "aha/networks/classifier.h"

namespace aha {

struct Callable {
  std::string name = "callable";
  int64_t classes = 0, size = 0;
  // pixels (n, 3, size, size) -> logits (n, classes)
  std::function<void(const float* pixels, int64_t n, float* logits)> forward;
  // weights (n, classes) -> gradient (n, 3, size, size) of sum_c weights_c logit_c; empty = none
  std::function<void(const float* pixels, const float* weights, int64_t n, float* gradient)> gradient;
};

std::unique_ptr<Classifier> classifier_from_callable(Callable callable);

}  // namespace aha
