#include "aha/perturb/perturbation_sequence.h"

#include <span>

#include "aha/base/error.h"

namespace aha {
namespace {

void check_images(const Tensor& pixels, const Tensor& reference) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  check_shape(reference, {pixels.size(0), 3, pixels.size(2), pixels.size(3)}, "reference");
}

void check_steps(int64_t first, int64_t count, int64_t steps) {
  if (first < 0 || count < 0 || first + count > steps)
    throw input_error("perturbation sequence: expected steps within 0..{}, found {}..{}", steps, first,
                      first + count);
}

// order (B, N) most important first -> keep (B, S, N), 1 = visible: counts[s] elements removed.
Tensor keep_from_order(const Tensor& order, std::span<const int64_t> counts, Removal removal,
                       const at::TensorOptions& options) {
  const int64_t B = order.size(0), N = order.size(1), S = static_cast<int64_t>(counts.size());
  Tensor keep = torch::ones({B, S, N}, options);
  for (int64_t s = 0; s < S; ++s) {
    if (counts[s] < 0 || counts[s] > N)
      throw input_error("perturbation sequence: expected to remove 0..{} elements, found {}", N, counts[s]);
    const Tensor removed = order.narrow(1, removal == Removal::kTop ? 0 : N - counts[s], counts[s]);
    keep.select(1, s).scatter_(1, removed.to(keep.device()), 0);
  }
  return keep;
}

}  // namespace

HardSequence::HardSequence(const Tensor& pixels, const Tensor& reference, const Tensor& order,
                           std::vector<int64_t> counts, Removal removal)
    : pixels_(pixels), reference_(reference), order_(order), counts_(std::move(counts)), removal_(removal) {
  check_images(pixels, reference);
  check_shape(order, {pixels.size(0), pixels.size(2) * pixels.size(3)}, "order");
}

Tensor HardSequence::images(int64_t first, int64_t count) const {
  check_steps(first, count, steps());
  const std::span<const int64_t> counts(counts_.data() + first, static_cast<size_t>(count));
  const Tensor keep =
      keep_from_order(order_, counts, removal_, pixels_.options().dtype(torch::kBool).requires_grad(false))
          .view({pixels_.size(0), count, 1, pixels_.size(2), pixels_.size(3)});
  return torch::where(keep, pixels_.unsqueeze(1), reference_.unsqueeze(1));
}

}  // namespace aha
