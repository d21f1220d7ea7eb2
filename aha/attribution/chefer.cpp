#include "aha/attribution/chefer.h"

#include "aha/attribution/attention_maps.h"
#include "aha/attribution/target_gradient.h"

namespace aha {

Tensor chefer_values(Classifier& target, const Tensor& pixels, const Tensor& classes) {
  if (const auto found = target.relevance(pixels, classes, {})) return found->patches;
  std::vector<Tensor> values;
  for (int64_t b = 0; b < pixels.size(0); ++b) {
    const auto tapped =
        tapped_gradients(target, pixels.narrow(0, b, 1), classes.narrow(0, b, 1), attention_taps(target));
    values.push_back(chefer_patches(tapped.values, tapped.gradients, target.prefix_tokens()));
  }
  return torch::cat(values);
}

}  // namespace aha
