#include "aha/kernels/depthwise/depthwise.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

void check_channels(int64_t channels) {
  if (channels <= 0 || channels % kPanel != 0)
    throw input_error("depthwise: expected a multiple of {} channels, found {}", kPanel, channels);
}

}  // namespace

DepthwiseWeights DepthwiseWeights::forward(const float* kernel, const float* bias, int64_t channels) {
  check_channels(channels);
  DepthwiseWeights w;
  w.channels_ = channels;
  w.taps_ = AlignedBuffer<float>(channels * kTaps);
  w.bias_ = AlignedBuffer<float>(channels);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < kTaps; ++tap)
      w.taps_[(c / kPanel * kTaps + tap) * kPanel + c % kPanel] = kernel[c * kTaps + tap];
    if (bias) w.bias_[c] = bias[c];
  }
  return w;
}

DepthwiseWeights DepthwiseWeights::backward(const float* kernel, int64_t channels) {
  check_channels(channels);
  AlignedBuffer<float> turned(channels * kTaps);
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t tap = 0; tap < kTaps; ++tap) turned[c * kTaps + tap] = kernel[c * kTaps + kTaps - 1 - tap];
  return forward(turned.data(), nullptr, channels);
}

void depthwise(const KernelSet& kernels, int64_t first_line, int64_t lines, const DepthwiseJob& job) {
  const int64_t channels = job.weights->channels();
  check_channels(channels);
  if (job.height < 1 || job.width < 1 || first_line < 0 || lines < 0)
    throw input_error(
        "depthwise: expected images of at least one pixel and lines from 0 on, found {} x {} from line {}",
        job.height, job.width, first_line);
  if (job.in_stride < channels || job.out_stride < channels)
    throw input_error("depthwise: expected rows at least {} floats apart, found {} and {}", channels,
                      job.in_stride, job.out_stride);
  if (job.operand && (job.operand->format() != kernels.format || job.operand->columns() != channels ||
                      job.operand->rows() < lines * job.width))
    throw input_error("depthwise: expected an operand of {} x {} in {}, found {} x {} in {}",
                      lines * job.width, channels, name_of(kernels.format), job.operand->rows(),
                      job.operand->columns(), name_of(job.operand->format()));
  const double operations = 2.0 * DepthwiseWeights::kTaps * static_cast<double>(lines * job.width * channels);
  shared_ranges(lines * (channels / kPanel), 1, operations,
                [&](int64_t first, int64_t end) { kernels.depthwise(first_line, lines, first, end, job); });
}

void depthwise_weight_gradient(const KernelSet& kernels, int64_t images, const DepthwiseWeightGradient& job) {
  check_channels(job.channels);
  if (job.height < 1 || job.width < 1 || images < 0)
    throw input_error("depthwise: expected images of at least one pixel, found {} of {} x {}", images,
                      job.height, job.width);
  if (job.in_stride < job.channels || job.dout_stride < job.channels)
    throw input_error("depthwise: expected rows at least {} floats apart, found {} and {}", job.channels,
                      job.in_stride, job.dout_stride);
  kernels.depthwise_weight_gradient(images, job);
}

}  // namespace aha
