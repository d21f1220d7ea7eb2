#include "aha/objective/guard.h"

#include "aha/tensor/torch.h"

#include "aha/ranking/hard_order.h"

namespace aha {
namespace {

// (1, 2 S, N): 1 for the pixels that stay. First all but the most important shares, then, with the same
// counts removed from the other end, all but the least important ones.
Tensor kept_pixels(const Tensor& map) {
  const Tensor order = hard_order(map.cpu()).order;  // (1, N)
  const int64_t N = order.size(1);
  std::vector<Tensor> keep;
  for (const bool most_important : {true, false})
    for (int i = 1; i <= kGuardPoints; ++i) {
      const int64_t removed = N * i / (kGuardPoints + 1);
      keep.push_back(
          torch::ones({1, N}).scatter_(1, order.narrow(1, most_important ? 0 : N - removed, removed), 0.0));
    }
  return torch::stack(keep, 1).to(map.device());
}

}  // namespace

double hard_ins_del(Classifier& target, const Tensor& map, const ObjectiveImages& images,
                    const ObjectiveOptions& options) {
  const int64_t H = map.size(1), W = map.size(2), rounds = std::ssize(options.references);
  check_shape(images.pixels, {1, 3, H, W}, "pixels of the guard");
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> references;
  for (const auto& kind : options.references)
    references.push_back(references_of(target, images, {kind}, options));
  const PerturbedImages questions{images.pixels.repeat({rounds, 1, 1, 1}), torch::cat(references),
                                  torch::arange(H * W, torch::kInt32).view({H, W}),
                                  kept_pixels(map).repeat({rounds, 1, 1}), images.classes.repeat({rounds})};
  const Tensor probs =
      target.perturbed_scores(questions, false).scores.to(torch::kCPU, torch::kFloat64);  // (R, 2 S)
  return (probs.slice(1, kGuardPoints) - probs.slice(1, 0, kGuardPoints)).mean().item<double>();
}

}  // namespace aha
