#include "aha/objective/guard.h"

#include "aha/tensor/torch.h"

#include "aha/objective/sequence_probabilities.h"
#include "aha/ranking/hard_order.h"

namespace aha {
namespace {

// (1, S, N): 1 for the pixels before the k-th of the order
Tensor hard_top_masks(const Tensor& map) {
  const Tensor order = hard_order(map.cpu()).order;  // (1, N)
  const int64_t pixels = order.size(1);
  std::vector<Tensor> masks;
  for (int i = 1; i <= kGuardPoints; ++i)
    masks.push_back(
        torch::zeros({1, pixels}).scatter_(1, order.narrow(1, 0, pixels * i / (kGuardPoints + 1)), 1.0));
  return torch::stack(masks, 1).to(map.device());
}

}  // namespace

double hard_ins_del(Classifier& target, const Tensor& map, const ObjectiveImages& images,
                    const ObjectiveOptions& options) {
  const int64_t H = map.size(1), W = map.size(2), rounds = std::ssize(options.references);
  check_shape(images.pixels, {1, 3, H, W}, "pixels of the guard");
  const torch::NoGradGuard no_grad;
  const ReferenceOptions reference = with_mean_color(options.reference, target.info().mean_color);
  std::vector<Tensor> references;
  for (const auto& kind : options.references)
    references.push_back(reference_images(images.pixels, std::vector<std::string>{kind}, reference));
  const SequenceImages sequence{images.pixels.repeat({rounds, 1, 1, 1}), torch::cat(references),
                                torch::arange(H * W, torch::kInt32).view({H, W}),
                                images.classes.repeat({rounds})};
  const auto probs = sequence_probabilities(target, sequence, hard_top_masks(map).repeat({rounds, 1, 1}));
  return (probs.insertion.to(torch::kFloat64).mean() - probs.deletion.to(torch::kFloat64).mean())
      .item<double>();
}

}  // namespace aha
