#include "aha/kernels/sets/kernels_ref.h"

namespace aha {

void convolution_ref(int64_t lines, const ConvolutionJob& job) {
  const ConvolutionWeights& w = *job.weights;
  const int64_t N = w.outputs(), C = w.channels(), side = w.side();
  for (int64_t y = 0; y < lines; ++y)
    for (int64_t x = 0; x < job.width; ++x)
      for (int64_t n = 0; n < N; ++n) {
        double sum = w.bias()[n];
        const float* kernel = w.panel(n / ConvolutionWeights::kPanel) + n % ConvolutionWeights::kPanel;
        for (int64_t i = 0; i < side; ++i)
          for (int64_t j = 0; j < side; ++j)
            for (int64_t c = 0; c < C; ++c, kernel += ConvolutionWeights::kPanel)
              sum += double{*kernel} * job.in[((y * job.stride + i) * job.in_width + x * job.stride + j) * C + c];
        job.out[(y * job.width + x) * N + n] = static_cast<float>(sum);
      }
}

}  // namespace aha
