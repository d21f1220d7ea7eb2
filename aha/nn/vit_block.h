// A transformer block on the fast kernels, forward and backward: frozen networks, encoders and training all
// run this one. Its plain twin on libtorch is transformer_block.h.
//
//   x += s1 * proj(attention(rot(norm1(x))))        s1, s2: LayerScale or 1; rot: rotary positions of queries
//   and keys, or nothing x += s2 * fc2(act(fc1(norm2(x))))               act: GELU, or SwiGLU, where fc1
//   gives two halves and act([a | b]) = silu(a) b
//
// Norms, LayerScale and 1/sqrt(d) are folded into the four linear layers (folded_linear.h): once for frozen
// weights, at every step in training. Activations that feed a GEMM exist only as its operand; the residual
// stream, norms, softmax and sums are float32.
//
// Queries: the last block of a classifier needs its class tokens alone. The first Q of T tokens then ask;
// queries, projection and MLP run on them (7 % of the work of a network of 12 blocks is saved).
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "aha/kernels/kernel_set.h"
#include "aha/nn/counted_buffers.h"
#include "aha/nn/folded_linear.h"

namespace aha {

struct VitBlockOptions {
  int64_t width = 192, heads = 3, hidden = 768;
  double eps = 1e-6;
  bool swiglu = false;

  int64_t head_width() const { return width / heads; }
  int64_t fc1_outputs() const { return swiglu ? 2 * hidden : hidden; }
  bool fits() const;           // widths of tokens and heads in multiples of 32, and of the MLP with SwiGLU
  bool fits_training() const;  // the width of the MLP too
  bool operator==(const VitBlockOptions&) const = default;
};

struct VitBlockWeights {
  Tensor norm1_weight, norm1_bias;  // (D)
  Tensor qkv_weight, qkv_bias;      // (3D, D), (3D)
  Tensor proj_weight, proj_bias;    // (D, D), (D)
  Tensor norm2_weight, norm2_bias;  // (D)
  Tensor fc1_weight,
      fc1_bias;  // (F, D), (F); SwiGLU: (2F, D), (2F), the gate's rows before those of the value
  Tensor fc2_weight, fc2_bias;  // (D, F), (D)
  Tensor scale1, scale2;        // (D), undefined = no LayerScale

  // All of them in this order, the scales only where there are some; and back.
  std::vector<Tensor> list() const;
  static VitBlockWeights from_list(at::TensorList list);
  // As the kernels read them, their shapes checked.
  VitBlockWeights plain(const VitBlockOptions& options) const;
};

// The four linear layers with what folds into each. Of gradients in place of weights: where these go.
enum VitLinear { kQkv, kProj, kFc1, kFc2, kVitLinears };
using VitBlockLinears = std::array<AffineLinear, kVitLinears>;
VitBlockLinears linears_of(const VitBlockWeights& weights, const VitBlockOptions& options);
GradientSums gradient_sums(const VitBlockOptions& options);

// What the forward pass leaves for the backward pass of a chunk of images.
enum class VitBlockKeep { kNothing, kForInputGradient, kForAllGradients };
struct VitBlockState {
  VitBlockState() = default;
  VitBlockState(const VitBlockOptions& options, Format format, CountedBuffers& buffers, int64_t images,
                int64_t tokens, int64_t queries, VitBlockKeep keep);

  int64_t capacity = 0, tokens = 0, queries = 0;  // images, and of each image
  Activations xhat1, xhat2;                       // norm1 of all tokens, norm2 of those that ask
  Activations xhat_q;                             // norm1 of those that ask, where not all do
  Heads q, k, v;
  ActivationDerivative gelu_derivative;  // GELU
  Activations gates;                     // SwiGLU: what fc1 gives
  Activations context, hidden;           // inputs of proj and fc2, for their weight gradients
  AlignedBuffer<float> rstd1, rstd2, rstd_q, log_sum_exp;
};

// Scratch buffers that the blocks of a network share, of one thread.
struct VitBlockScratch {
  VitBlockScratch() = default;
  // Blocks with these numbers of queries; row_width: columns of `rows`, at least the block's width.
  VitBlockScratch(const VitBlockOptions& options, Format format, CountedBuffers& buffers, int64_t images,
                  int64_t tokens, const std::vector<int64_t>& queries, bool backward, int64_t row_width = 0);

  Activations
      stream;  // (R, D): what the attention gives; in the backward pass the gradient of the residual stream
  Activations hidden;  // (R, F): of the MLP; in the backward pass its gradient
  // Backward pass only.
  Activations dgates;         // (R, 2F): SwiGLU
  AlignedBuffer<float> rows;  // (R, row_width): what a GEMM gives to a norm
  struct OfQueries {
    int64_t queries = 0;
    Activations dqkv{}, dq{}, dkv{};  // dqkv, or dq and dkv where not all tokens ask
    Heads dout{};                     // of the attention
    AlignedBuffer<float> dx{};  // (images * queries, D): gradient of the tokens that ask, where not all do
  };
  std::vector<OfQueries> of_queries;
  OfQueries& of(int64_t queries);
};

class VitBlock {
 public:
  enum class Queries { kAll, kFirst, kBoth };  // what it is packed for

  VitBlock(const VitBlockOptions& options, const VitBlockLinears& linears, const KernelSet& kernels,
           Queries queries = Queries::kAll, Pass pass = Pass::kForward, const RopeAngles& rope = {});

  // x (images * tokens, D) -> out (images * queries, D), which may be x where all tokens ask. save: for a
  // backward pass. context (rows of queries, D) and hidden (rows of queries, F): the state's, or scratch.
  void forward(VitBlockState& state, int64_t images, const float* x, float* out, Activations& context,
               Activations& hidden, bool save) const;

  // The first tokens of what just ran on all of them, saved for a backward pass: `first` is of as many tokens
  // as it has queries, keys and values stay in `whole`. out: these tokens before the block, then behind it.
  void forward_first(const VitBlockState& whole, VitBlockState& first, int64_t images, float* out,
                     Activations& context, Activations& hidden) const;

  // Queries and log-sum-exp of the first tokens of what just ran on all of them.
  void first_queries(const VitBlockState& whole, VitBlockState& first, int64_t images) const;

  // Gradient of what the attention gives to each of `queries` tokens; scratch.stream is the gradient of what
  // it writes into the residual stream.
  const Heads& attention_gradient(int64_t images, int64_t queries, VitBlockScratch& scratch) const;

  struct Gradient {
    const float* dout = nullptr;  // (images * queries, D); scratch.stream holds the same as an operand
    float* dx = nullptr;          // (images * tokens, D), written; may be dout where all tokens ask
    bool to_operand = false;      // scratch.stream becomes dx as an operand
    float* sums = nullptr;        // gradient_sums() of the weights, added to; null = not wanted
    // Sees the gradient of what the attention gives. False = stop here, dx is not wanted.
    std::function<bool(const VitBlockState&, const Heads& dout)> at_attention{};
  };
  void backward(const VitBlockState& state, int64_t images, VitBlockScratch& scratch,
                const Gradient& gradient) const;

  int64_t bytes() const;  // of the packed weights

 private:
  // Attention, projection and MLP.
  void finish(VitBlockState& state, const AttentionInput& attention, float* out, Activations& context,
              Activations& hidden, bool save) const;

  VitBlockOptions options_;
  const KernelSet* kernels_;
  RopeAngles rope_;
  GradientSums sums_;
  PackedLinear qkv_, q_, kv_, proj_, fc1_, fc2_;
};

}  // namespace aha
