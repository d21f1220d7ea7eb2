#include "aha/objective/ladder_probabilities.h"

#include "aha/tensor/torch.h"

#include "aha/nn/frozen_network.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

// Perturbed images a piece. ViT-Tiny at 224, forward and backward, one thread: 4, 8 and 16 are within 3 % of each other, and 8 need 0.3 GB.
constexpr int64_t kPiece = 8;

struct KeptProbabilities {
  Tensor probs;     // (B, Q)
  Tensor jacobian;  // (B, Q, K), undefined unless wanted
};

// grad (n, 3, H, W) by the perturbed image -> (n, K) by keep: sum over a region's pixels of grad . (image - reference)
void add_regions(const Tensor& grad, const Tensor& difference, const int32_t* region, Tensor jacobian_rows) {
  const Tensor along = (grad * difference).sum(1).contiguous();  // (n, H, W)
  const int64_t n = along.size(0), pixels = along.size(1) * along.size(2), K = jacobian_rows.size(1);
  std::vector<double> sums(static_cast<size_t>(K));
  for (int64_t i = 0; i < n; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    const float* values = along.data_ptr<float>() + i * pixels;
    for (int64_t x = 0; x < pixels; ++x) sums[static_cast<size_t>(region[x])] += values[x];
    float* row = jacobian_rows[i].data_ptr<float>();
    for (int64_t k = 0; k < K; ++k) row[k] = static_cast<float>(sums[static_cast<size_t>(k)]);
  }
}

KeptProbabilities by_autograd(Classifier& target, const LadderImages& images, const Tensor& keep, bool with_gradient) {
  const int64_t B = keep.size(0), Q = keep.size(1), K = keep.size(2), H = images.pixels.size(2), W = images.pixels.size(3);
  const int64_t pieces = (Q + kPiece - 1) / kPiece;
  const auto device = images.pixels.device();
  const Tensor region = images.region.flatten().to(torch::kInt64).to(device);
  const Tensor region_cpu = images.region.to(torch::kCPU, torch::kInt32).contiguous();
  const Tensor classes = images.classes.to(torch::kCPU);
  KeptProbabilities out{torch::empty({B, Q}), with_gradient ? torch::empty({B, Q, K}) : Tensor()};

  const auto piece = [&](int64_t i) {
    const torch::AutoGradMode grad_mode(with_gradient);
    const int64_t b = i / pieces, first = i % pieces * kPiece, last = std::min(first + kPiece, Q);
    const Tensor reference = images.reference[b], difference = images.pixels[b] - reference;               // (3, H, W)
    const Tensor rows = keep[b].slice(0, first, last).detach().index_select(1, region).view({-1, 1, H, W});  // (n, 1, H, W)
    Tensor x = (reference + rows * difference).detach();                                                    // (n, 3, H, W)
    if (with_gradient) x.requires_grad_(true);
    const Tensor p = torch::softmax(target.logits(x), 1).select(1, classes[b].item<int64_t>());             // (n)
    out.probs[b].slice(0, first, last).copy_(p.detach());
    if (!with_gradient) return;
    const Tensor gradient = torch::autograd::grad({p.sum()}, {x})[0];
    const torch::NoGradGuard no_grad;
    add_regions(gradient.cpu(), difference.cpu(), region_cpu.data_ptr<int32_t>(), out.jacobian[b].slice(0, first, last));
  };
  if (device.is_cpu())
    one_thread_each(B * pieces, piece);
  else
    for (int64_t i = 0; i < B * pieces; ++i) piece(i);
  return out;
}

KeptProbabilities kept_probabilities(Classifier& target, const LadderImages& images, const Tensor& keep, bool with_gradient) {
  FrozenNetwork* engine = images.pixels.is_cpu() ? target.engine() : nullptr;
  if (!engine) return by_autograd(target, images, keep.cpu(), with_gradient);
  auto found = engine->perturbed_probabilities({images.pixels, images.reference, images.region, keep.detach().contiguous(), images.classes}, with_gradient);
  return {found.probs, found.gradient};
}

struct KeptFunction : torch::autograd::Function<KeptFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& keep, Classifier* target, const LadderImages* images) {
    auto found = kept_probabilities(*target, *images, keep, true);
    context->save_for_backward({found.jacobian.to(keep.device())});
    return found.probs.to(keep.device());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, const torch::autograd::variable_list& grad) {
    return {grad[0].unsqueeze(2) * context->get_saved_variables()[0], Tensor(), Tensor()};  // (B, Q, K)
  }
};

}  // namespace

LadderProbabilities ladder_probabilities(Classifier& target, const LadderImages& images, const Tensor& masks) {
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
                           : kept_probabilities(target, images, keep, false).probs.to(keep.device());
  return {probs.slice(1, 0, S), probs.slice(1, S)};
}

}  // namespace aha
