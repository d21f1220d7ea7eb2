#include "aha/objective/sequence_probabilities.h"

#include "aha/tensor/torch.h"

namespace aha {
namespace {

PerturbedImages perturbed(const SequenceImages& images, const Tensor& keep) {
  return {images.pixels, images.reference, images.region, keep.detach().contiguous(), images.classes};
}

struct KeptFunction : torch::autograd::Function<KeptFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& keep, Classifier* target,
                        const SequenceImages* images) {
    const auto found = target->perturbed_scores(perturbed(*images, keep), true);
    context->save_for_backward({found.gradient.to(keep.device())});
    return found.scores.to(keep.device());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grad) {
    return {grad[0].unsqueeze(2) * context->get_saved_variables()[0], Tensor(), Tensor()};  // (B, Q, K)
  }
};

}  // namespace

SequenceProbabilities sequence_probabilities(Classifier& target, const SequenceImages& images,
                                             const Tensor& masks) {
  check_shape(images.pixels, {-1, 3, -1, -1}, "pixels");
  const int64_t B = images.pixels.size(0), H = images.pixels.size(2), W = images.pixels.size(3);
  check_shape(images.reference, {B, 3, H, W}, "reference");
  check_shape(images.region, {H, W}, "regions");
  check_shape(images.classes, {B}, "classes");
  check_shape(masks, {B, -1, -1}, "masks");
  const int64_t S = masks.size(1);
  const Tensor keep = torch::cat({1 - masks, masks}, 1);  // (B, 2S, K)
  const Tensor probs = keep.requires_grad() && torch::GradMode::is_enabled()
                           ? KeptFunction::apply(keep, &target, &images)
                           : target.perturbed_scores(perturbed(images, keep), false).scores.to(keep.device());
  return {probs.slice(1, 0, S), probs.slice(1, S)};
}

}  // namespace aha
