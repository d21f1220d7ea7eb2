// A frozen ConvNeXt on the fast kernels: forward, and forward + backward to the pixels or to the masks of
// perturbed images.
//
//   stem     patches of stem_stride x stem_stride pixels as one GEMM, LayerNorm
//   stage s  from the second on: LayerNorm and 2 x 2 patches of it as one GEMM; then the blocks of
//   convnext_block.h logits   head(norm(mean over pixels))
//
// LayerNorm's affine part is folded into the GEMM that follows; the stem's norm feeds the residual stream and
// keeps its affine part as a diagonal GEMM (0.3 % of ConvNeXt-Small).
#pragma once

#include <vector>

#include "aha/nn/convnext_block.h"
#include "aha/nn/frozen_network.h"

namespace aha {

// Everything the network is, as plain float32 tensors on the CPU.
struct FrozenConvNextWeights {
  using Block = ConvNextBlockWeights;
  struct Stage {
    Tensor norm_weight, norm_bias;  // (D of the stage before); undefined in the first stage
    Tensor down_weight, down_bias;  // (D, D of the stage before, 2, 2), (D); undefined in the first stage
    std::vector<Block> blocks;      // at least one
  };
  int64_t height = 224, width = 224;  // multiples of stem_stride << (stages - 1)
  int64_t stem_stride = 4;
  double eps = 1e-6, head_eps = 1e-6;  // of every LayerNorm but the last, and of the last
  std::array<double, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  Tensor stem_weight, stem_bias;            // (D, 3, P, P), (D)
  Tensor stem_norm_weight, stem_norm_bias;  // (D)
  std::vector<Stage> stages;
  Tensor head_norm_weight, head_norm_bias;  // (D)
  Tensor head_weight, head_bias;            // (C, D), (C)
};

class FrozenConvNext : public FrozenNetwork {
 public:
  // Widths are multiples of 32.
  FrozenConvNext(const FrozenConvNextWeights& weights, Precision precision);
  FrozenConvNext(const FrozenConvNextWeights& weights, const KernelSet& kernels);

  // The residual stream after the given stages (0-based; kStem: before the first): each (B, D, h, w) in
  // channels-last memory. No gradient.
  static constexpr int kStem = -1;
  std::vector<Tensor> features_after(const Tensor& pixels, const std::vector<int>& stages);

 private:
  struct Body;
};

}  // namespace aha
