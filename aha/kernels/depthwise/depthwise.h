// Depthwise convolution of 7 x 7, stride 1, padding 3, on pixels as rows of channels.
//
//   out[y, x, c] = start + sum over i, j in 0..6 of kernel[c, i, j] * in[y + i - 3, x + j - 3, c]
//
// where taps outside the image count as zero and are not computed: a third of them is left on a 4 x 4 image.
// The backward pass to the input is the same sum with the kernel turned by 180 degrees. Each output is one
// chain of fused multiply-adds in the order of (i, j), so that its value does not depend on the tile it fell
// into.
//
// The gradient of the kernel is, for each tap, the sum over the pixels it multiplied:
//
//   dkernel[c, i, j] += sum over y, x of dout[y, x, c] * in[y + i - 3, x + j - 3, c],    dbias[c] += sum of
//   dout[., c]
//
// Cost: 98 flops a pixel and channel each, float32 in every kernel set. Where workers are idle they share the
// lines and panels of channels; the gradient of the kernel is one thread's.
//
// A direct kernel because oneDNN's is slower where this network needs it; see depthwise_vector.h for the
// figures.
#pragma once

#include "aha/kernels/core/activations.h"

namespace aha {

struct KernelSet;

class DepthwiseWeights {
 public:
  static constexpr int64_t kSide = 7, kReach = 3, kTaps = kSide * kSide;

  DepthwiseWeights() = default;
  // kernel: (channels, 7, 7), row-major; bias: one per channel, or null. Channels are a multiple of 32.
  static DepthwiseWeights forward(const float* kernel, const float* bias, int64_t channels);
  // Turned by 180 degrees, without bias.
  static DepthwiseWeights backward(const float* kernel, int64_t channels);

  int64_t channels() const { return channels_; }
  // Of 32 channels: [tap][32].
  const float* panel(int64_t s) const { return taps_.data() + s * kTaps * kPanel; }
  const float* bias() const { return bias_.data(); }
  float at(int64_t channel, int64_t tap) const {
    return panel(channel / kPanel)[tap * kPanel + channel % kPanel];
  }

 private:
  int64_t channels_ = 0;
  AlignedBuffer<float> taps_, bias_;
};

// A stack of images, height * width rows of channels each, row-major. A line is `width` such rows; lines are
// counted through the whole stack.
struct DepthwiseJob {
  const float* in = nullptr;  // the whole stack, rows in_stride apart
  int64_t in_stride = 0;
  int64_t height = 0, width = 0;
  const DepthwiseWeights* weights = nullptr;
  float* out = nullptr;  // of the first line that is computed, rows out_stride apart
  int64_t out_stride = 0;
  bool add = false;  // start = what is in out, instead of the bias
  Activations* operand =
      nullptr;  // the new out as the operand of the next GEMM, from its row 0 on; null = not wanted
};

// Lines first_line .. first_line + lines - 1. in and out must not overlap.
void depthwise(const KernelSet& kernels, int64_t first_line, int64_t lines, const DepthwiseJob& job);

struct DepthwiseWeightGradient {
  const float *in = nullptr, *dout = nullptr;  // stacks of images
  int64_t in_stride = 0, dout_stride = 0;      // floats from row to row
  int64_t height = 0, width = 0, channels = 0;
  float* taps = nullptr;  // [panel of 32 channels][tap][32], added to
  float* bias = nullptr;  // (channels), added to
};

// Summed in the order of the lines.
void depthwise_weight_gradient(const KernelSet& kernels, int64_t images, const DepthwiseWeightGradient& job);

}  // namespace aha
