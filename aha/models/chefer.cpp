#include "aha/models/chefer.h"

#include "aha/models/attention_maps.h"
#include "aha/models/target_gradient.h"
#include "aha/nn/frozen_vit.h"

namespace aha {

Tensor chefer_values(Classifier& target, const Tensor& pixels, const Tensor& classes) {
  const int64_t size = target.info().input.size, prefix = target.prefix_tokens();
  if (auto* vit = dynamic_cast<FrozenVit*>(target.engine());
      vit && pixels.is_cpu() && pixels.size(2) == size && pixels.size(3) == size)
    return vit->relevance(pixels, classes).tokens.slice(1, prefix);
  std::vector<Tensor> values;
  for (int64_t b = 0; b < pixels.size(0); ++b) {
    const auto tapped =
        tapped_gradients(target, pixels.narrow(0, b, 1), classes.narrow(0, b, 1), attention_taps(target));
    values.push_back(chefer_patches(tapped.values, tapped.gradients, prefix));
  }
  return torch::cat(values);
}

}  // namespace aha
