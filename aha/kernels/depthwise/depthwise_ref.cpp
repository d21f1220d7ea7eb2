#include "aha/kernels/sets/kernels_ref.h"

namespace aha {

void depthwise_ref(int64_t first_line, int64_t lines, int64_t first, int64_t end, const DepthwiseJob& job) {
  constexpr int64_t kSide = DepthwiseWeights::kSide, kReach = DepthwiseWeights::kReach;
  for (int64_t part = first; part < end; ++part)
    for (int64_t x = 0; x < job.width; ++x)
      for (int64_t c = part / lines * kPanel; c < (part / lines + 1) * kPanel; ++c) {
        const int64_t l = part % lines, image = (first_line + l) / job.height,
                      y = (first_line + l) % job.height, row = l * job.width + x;
        float& out = job.out[row * job.out_stride + c];
        double sum = job.add ? out : job.weights->bias()[c];
        for (int64_t i = 0; i < kSide; ++i)
          for (int64_t j = 0; j < kSide; ++j) {
            const int64_t from_y = y + i - kReach, from_x = x + j - kReach;
            if (from_y < 0 || from_y >= job.height || from_x < 0 || from_x >= job.width) continue;
            sum += double{job.weights->at(c, i * kSide + j)} *
                   job.in[((image * job.height + from_y) * job.width + from_x) * job.in_stride + c];
          }
        out = static_cast<float>(sum);
        if (job.operand) job.operand->set(row, c, out);
      }
}

void depthwise_weight_gradient_ref(int64_t images, const DepthwiseWeightGradient& job) {
  constexpr int64_t kSide = DepthwiseWeights::kSide, kReach = DepthwiseWeights::kReach;
  const auto row = [&](int64_t image, int64_t y, int64_t x) {
    return (image * job.height + y) * job.width + x;
  };
  for (int64_t c = 0; c < job.channels; ++c) {
    for (int64_t i = 0; i < kSide; ++i)
      for (int64_t j = 0; j < kSide; ++j) {
        double sum = 0;
        for (int64_t image = 0; image < images; ++image)
          for (int64_t y = 0; y < job.height; ++y)
            for (int64_t x = 0; x < job.width; ++x) {
              const int64_t from_y = y + i - kReach, from_x = x + j - kReach;
              if (from_y < 0 || from_y >= job.height || from_x < 0 || from_x >= job.width) continue;
              sum += double{job.dout[row(image, y, x) * job.dout_stride + c]} *
                     job.in[row(image, from_y, from_x) * job.in_stride + c];
            }
        float& to = job.taps[(c / kPanel * DepthwiseWeights::kTaps + i * kSide + j) * kPanel + c % kPanel];
        to = static_cast<float>(to + sum);
      }
    double sum = 0;
    for (int64_t r = 0; r < images * job.height * job.width; ++r) sum += job.dout[r * job.dout_stride + c];
    job.bias[c] = static_cast<float>(job.bias[c] + sum);
  }
}

}  // namespace aha
