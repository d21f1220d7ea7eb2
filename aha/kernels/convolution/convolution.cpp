#include "aha/kernels/convolution/convolution.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"

namespace aha {

ConvolutionWeights::ConvolutionWeights(const float* kernel, const float* bias, int64_t outputs, int64_t channels, int64_t side)
    : outputs_(outputs), channels_(channels), side_(side) {
  if (outputs < 1 || channels < 1 || side < 1)
    throw input_error("convolution: expected at least one output, channel and tap, found {} x {} x {}", outputs, channels, side);
  kernel_ = AlignedBuffer<float>(panels() * depth() * kPanel);
  bias_ = AlignedBuffer<float>(panels() * kPanel);
  const int64_t taps = side * side;
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < channels; ++c)
        kernel_[(n / kPanel * depth() + tap * channels + c) * kPanel + n % kPanel] = kernel[(n * channels + c) * taps + tap];
  if (bias) std::copy_n(bias, outputs, bias_.data());
}

void convolution(const KernelSet& kernels, int64_t lines, const ConvolutionJob& job) {
  const int64_t side = job.weights->side(), needed = (job.width - 1) * job.stride + side;
  if (lines < 0 || job.width < 1 || job.stride < 1 || job.in_width < needed)
    throw input_error("convolution: expected input lines of at least {} pixels for {} pixels at stride {}, found {}", needed, job.width, job.stride,
                      job.in_width);
  kernels.convolution(lines, job);
}

}  // namespace aha
