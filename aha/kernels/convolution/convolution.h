// Convolution of a map whose border is there already, on pixels as rows of channels.
//
//   out[y, x, n] = bias[n] + sum over i, j, c of kernel[n, c, i, j] * in[stride y + i, stride x + j, c],    0 <= i, j < side
//
// A line of a pixel's neighbourhood is side * channels floats in a row, so nothing is gathered. Each output is one chain of
// fused multiply-adds in the order of (i, j, c): its value depends neither on the tile it fell into nor on other images.
//
// Cost: 2 side^2 channels outputs flops a pixel, float32 in every kernel set. One thread. For decoders of a few dozen channels;
// see convolution_vector.h for the figures.
#pragma once

#include "aha/kernels/core/buffer.h"

namespace aha {

struct KernelSet;

class ConvolutionWeights {
 public:
  static constexpr int64_t kPanel = 16;  // outputs

  ConvolutionWeights() = default;
  // kernel: (outputs, channels, side, side), row-major; bias: one an output, or null.
  ConvolutionWeights(const float* kernel, const float* bias, int64_t outputs, int64_t channels, int64_t side);

  int64_t outputs() const { return outputs_; }
  int64_t channels() const { return channels_; }
  int64_t side() const { return side_; }
  int64_t depth() const { return side_ * side_ * channels_; }
  int64_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  // Of 16 outputs, with zeros behind the last: [i][j][c][16].
  const float* panel(int64_t p) const { return kernel_.data() + p * depth() * kPanel; }
  const float* bias() const { return bias_.data(); }  // panels() * 16

 private:
  int64_t outputs_ = 0, channels_ = 0, side_ = 0;
  AlignedBuffer<float> kernel_, bias_;
};

struct ConvolutionJob {
  const ConvolutionWeights* weights = nullptr;
  const float* in = nullptr;  // the top left pixel of the first line's neighbourhoods; pixels are channels floats
  int64_t in_width = 0;       // pixels of a line of the input, border included
  int64_t stride = 1;
  float* out = nullptr;   // lines of `width` pixels of `outputs` floats
  int64_t width = 0;
};

// The first `lines` lines of the output. in and out must not overlap.
void convolution(const KernelSet& kernels, int64_t lines, const ConvolutionJob& job);

}  // namespace aha
