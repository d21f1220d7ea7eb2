// Images evaluated together, and what the target says of them: the clean and the fully replaced versions are
// asked once, whatever the number of methods.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/evaluate/row_key.h"
#include "aha/metrics/metric.h"
#include "aha/perturb/adaptive_blur.h"
#include "aha/perturb/reference.h"

namespace aha {

struct ImageBatch {
  std::vector<int64_t> index;  // in the data set
  std::vector<KeyedImage> images;
  Tensor pixels;                             // (B, 3, H, W)
  std::vector<InputAnnotation> annotations;  // masks and boxes where the data set has them
  Tensor clean;                              // (B, C) logits, double; ask_target() fills it and what follows
  std::map<std::string, Tensor> references, replaced;  // by reference, (B, 3, H, W), (B, C) logits
  std::map<std::string, Tensor> classes;               // by explained class, (B)

  int64_t size() const { return static_cast<int64_t>(images.size()); }
};

// The chosen images.
ImageBatch chosen_images(const ImageBatch& batch, const std::vector<int64_t>& rows);

// What metrics see of them.
MetricImages metric_images(const ImageBatch& batch, const std::string& explained);

// The weakest blur of one image (3, H, W) that hides this class, by the options' kernels and probability.
AdaptiveBlur hiding_blur(Classifier& target, const Tensor& image, int64_t wanted,
                         const ReferenceOptions& options, const Context& context);

// One forward pass for each image, and one more for each reference. An adaptive blur hides the predicted
// class.
void ask_target(ImageBatch& batch, Classifier& target, const std::vector<std::string>& references,
                const ReferenceOptions& options, const Context& context);

}  // namespace aha
