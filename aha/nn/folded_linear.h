// A linear layer together with what stands around it, as one GEMM: LayerNorm's gamma and beta before it, a
// scale of its outputs behind it (LayerScale, 1/sqrt(d) of the queries).
//
//   W' = diag(s) W diag(gamma),   b' = s (b + W beta)                     in float64, rounded once
//
// The backward pass then sees xhat alone, and the gradients of norm and scale follow from dW' and db' without
// another pass over the activations:
//
//   dW = s (dW' gamma + db' beta^T),  db = s db',  dgamma = sum_n s_n dW'_n W_n,  dbeta = W^T (s db'),
//   ds = rowsum(dW' W gamma) + db' (b + W beta)
//
// Frozen networks fold once, training folds at every step.
#pragma once

#include <vector>

#include "aha/kernels/core/packed_weights.h"
#include "aha/tensor/tensor.h"

namespace aha {

// Contiguous float32 on the CPU; all but the weight may be undefined = not there.
struct AffineLinear {
  Tensor weight, bias{};       // (N, K), (N)
  Tensor gamma{}, beta{};      // (K)
  Tensor scale{};              // (N)
  int64_t factor_outputs = 0;  // the first so many outputs
  double factor = 1;           // are multiplied by this

  int64_t outputs() const { return weight.size(0); }
  int64_t inputs() const { return weight.size(1); }
};

struct FoldedLinear {
  int64_t outputs = 0, inputs = 0;
  std::vector<float> weight, bias;  // (outputs, inputs), (outputs)
};
FoldedLinear folded(const AffineLinear& linear);

// From dW' (outputs, inputs) and db' (outputs) to the gradients of what was folded: `to` holds zeros,
// undefined = not there.
void unfold(const AffineLinear& linear, const float* d_weight, const float* d_bias, const AffineLinear& to);

// Sums of the weight gradients of some linear layers, side by side in one buffer: dW' then db' of each.
class GradientSums {
 public:
  explicit GradientSums(const std::vector<std::pair<int64_t, int64_t>>& outputs_inputs);
  int64_t size() const { return size_; }
  int64_t weight(int linear) const { return at_[linear].weight; }  // places in the buffer
  int64_t bias(int linear) const { return at_[linear].bias; }

 private:
  struct Place {
    int64_t weight, bias;
  };
  std::vector<Place> at_;
  int64_t size_ = 0;
};

// For which pass a linear layer is packed. A forward pack serves the backward pass too: it is transposed when
// needed, so that a frozen network holds its weights once. Training, which uses a pack for many chunks, packs
// for each pass.
enum class Pass { kForward, kBackward };

class PackedLinear {
 public:
  PackedLinear() = default;
  PackedLinear(Format format, const FoldedLinear& linear, Pass pass = Pass::kForward)
      : PackedLinear(format, linear, pass, 0, linear.outputs) {}
  // Some of the outputs.
  PackedLinear(Format format, const FoldedLinear& linear, Pass pass, int64_t first, int64_t outputs);

  const PackedWeights& forward() const { return packed_; }
  // The transposed weights: a forward pack in a buffer of this thread, there until the thread asks for
  // another in the same slot (0 or 1).
  const PackedWeights& backward(const KernelSet& kernels, int slot = 0) const;
  const float* bias() const { return bias_.data(); }  // padded_outputs() values
  int64_t bytes() const { return packed_.bytes(); }

 private:
  Pass pass_ = Pass::kForward;
  PackedWeights packed_;
  AlignedBuffer<float> bias_;
};

}  // namespace aha
