// The verb behind `aha classify`: images in, most probable classes out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aha/app/chosen_class.h"
#include "aha/base/context.h"
#include "aha/data/dataset.h"

namespace aha {

struct Classified {
  std::string image;
  std::vector<ChosenClass> classes = {};  // most probable first
  std::string error = {};                 // why there are none; empty = there are
};

// Of probabilities (C), most probable first. Work error that opens with `image` where one is not finite.
std::vector<ChosenClass> top_classes(const Tensor& probs, int topk, const ClassifierInfo& target,
                                     const std::string& image);

// Calls `each` once per image, in order, as soon as its batch is done. Decoding runs ahead of the network;
// memory does not grow with the number of images. An image that cannot be read is named on stderr; a strict
// call, and one for a single image, ends there.
void classify(Classifier& target, const std::vector<std::string>& images, int topk, bool strict,
              const std::function<void(const Classified&)>& each, const Context& context);

struct Accuracy {
  int64_t images = 0;         // that could be read
  double top1 = 0, top5 = 0;  // shares of them
  double images_per_second = 0;
  std::vector<std::pair<std::string, std::string>> failures = {};  // image and reason
};
Accuracy accuracy(Classifier& target, const Dataset& data, bool strict, const Context& context);

}  // namespace aha
