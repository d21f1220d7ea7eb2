// A ConvNeXt block on the fast kernels, forward and backward: frozen networks and training both run this one.
// Its plain twin on libtorch is conv_block.h.
//
//   out = x + gamma * fc2(gelu(fc1(norm(dwconv7x7(x)))))
//
// A pixel is a row of channels. The norm's affine part and gamma are folded into the two linear layers
// (folded_linear.h); the depthwise convolution, the residual stream, norms and sums are float32.
#pragma once

#include <array>
#include <vector>

#include "aha/kernels/depthwise/depthwise.h"
#include "aha/kernels/kernel_set.h"
#include "aha/nn/counted_buffers.h"
#include "aha/nn/folded_linear.h"

namespace aha {

struct ConvNextBlockWeights {
  Tensor dw_weight, dw_bias;      // (D, 1, 7, 7), (D)
  Tensor norm_weight, norm_bias;  // (D)
  Tensor fc1_weight, fc1_bias;    // (F, D), (F)
  Tensor fc2_weight, fc2_bias;    // (D, F), (D)
  Tensor gamma;                   // (D), undefined = no LayerScale

  // All that are defined, in this order; and back.
  std::vector<Tensor> list() const;
  static ConvNextBlockWeights from_list(at::TensorList list);
  // As the kernels read them, their shapes checked.
  ConvNextBlockWeights plain() const;
};

enum ConvNextLinear { kConvFc1, kConvFc2, kConvLinears };
using ConvNextBlockLinears = std::array<AffineLinear, kConvLinears>;
ConvNextBlockLinears linears_of(const ConvNextBlockWeights& weights);

// The pixels of a chunk of images, cut into pieces of whole lines, small enough that the hidden rows of a
// piece stay in the second level cache.
struct LinePieces {
  int64_t lines = 0, line_pixels = 0;  // of one image
  int64_t piece_lines = 0;

  struct Piece {
    size_t index;
    int64_t first_line, lines, first_row, rows;
  };
  int64_t pixels() const { return lines * line_pixels; }
  int64_t piece_rows() const { return piece_lines * line_pixels; }
  template <class Work>
  void each(int64_t images, const Work& work) const {
    const int64_t all = images * lines;
    for (int64_t first = 0; first < all; first += piece_lines) {
      const int64_t n = std::min(piece_lines, all - first);
      work(Piece{static_cast<size_t>(first / piece_lines), first, n, first * line_pixels, n * line_pixels});
    }
  }
};
using PieceOperands = std::vector<Activations>;  // one per piece
PieceOperands piece_operands(const LinePieces& pieces, Format format, CountedBuffers& buffers, int64_t images,
                             int64_t columns);

// What the forward pass leaves for the backward pass of a chunk of images.
struct ConvNextBlockState {
  ConvNextBlockState(const LinePieces& pieces, Format format, CountedBuffers& buffers, int64_t images,
                     int64_t width, int64_t hidden, bool save);

  LinePieces pieces;
  PieceOperands xhat;
  std::vector<ActivationDerivative> gelu_derivative;
  AlignedBuffer<float> rstd;
};

class ConvNextBlock {
 public:
  ConvNextBlock(const ConvNextBlockWeights& plain, double eps, const KernelSet& kernels,
                Pass pass = Pass::kForward);

  // x, out: (images * pixels, D), may be the same. rows: scratch, (rows of a piece, D). hidden: (rows of a
  // piece, F), of the last piece afterwards.
  void forward(ConvNextBlockState& state, int64_t images, const float* x, float* out, float* rows,
               Activations& hidden, bool save) const;

  struct Gradient {
    float* dx = nullptr;  // (images * pixels, D): gradient of the output, becomes that of the input
    PieceOperands* operand = nullptr;      // the same as operands
    bool to_operand = false;               // `operand` becomes that of the input too
    float *rows = nullptr, *dy = nullptr;  // scratch: (rows of a piece, D), (images * pixels, D)
    Activations* hidden = nullptr;         // scratch: (rows of a piece, F)
    // Weight gradients, added to gradient_sums(); null = not wanted. Otherwise x and the hidden rows of the
    // forward pass, which was one piece.
    float* sums = nullptr;
    const float* x = nullptr;
    const Activations* kept_hidden = nullptr;
  };
  void backward(const ConvNextBlockState& state, int64_t images, const Gradient& gradient) const;

  // Sums: taps and bias of the convolution, then those of the linear layers from their place on.
  int64_t sums_size() const { return linears_at() + sums_.size(); }
  // From the sums to the gradients of the weights, which hold zeros.
  void unfold_sums(const ConvNextBlockWeights& plain, const float* sums,
                   const ConvNextBlockWeights& to) const;

  int64_t bytes() const;  // of the packed weights

 private:
  int64_t linears_at() const { return width_ * (DepthwiseWeights::kTaps + 1); }

  int64_t width_, hidden_;
  float eps_;
  const KernelSet* kernels_;
  GradientSums sums_;
  DepthwiseWeights depthwise_, depthwise_back_;
  PackedLinear fc1_, fc2_;
};

}  // namespace aha
