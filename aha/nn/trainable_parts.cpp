#include "aha/nn/trainable_parts.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"

namespace aha {
namespace {

// Partial sums: a bound for memory and for the threads of the way back.
constexpr int64_t kSums = 16;

}  // namespace

Tensor plain_weight(const Tensor& weight, at::IntArrayRef shape, std::string_view what) {
  if (weight.sizes() != shape || !weight.is_cpu())
    throw input_error("{}: expected shape {} on the CPU, found {} on {}", what, fmt::join(shape, " x "),
                      fmt::join(weight.sizes(), " x "), weight.device().str());
  return weight.detach().to(torch::kFloat32).contiguous();
}

Tensor sum_over_chunks(int64_t chunks, int64_t size,
                       const std::function<void(int64_t chunk, float* sums)>& add) {
  const int64_t partial = std::clamp<int64_t>(chunks, 1, kSums);
  std::vector<Tensor> sums(partial);
  parallel_for(partial, [&](int64_t i, int) {
    sums[i] = torch::zeros({size});
    for (int64_t c = i; c < chunks; c += partial) add(c, sums[i].data_ptr<float>());
  });
  for (int64_t i = 1; i < partial; ++i) sums[0].add_(sums[i]);
  return sums[0];
}

}  // namespace aha
