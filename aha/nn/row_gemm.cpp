#include "aha/nn/row_gemm.h"

#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/chunks.h"
#include "aha/nn/plain_tensors.h"
#include "aha/nn/worth_threads.h"

namespace aha {
namespace {

// (B, H, W, C), contiguous.
Tensor pixels_of(const Tensor& x) {
  return x.detach().permute({0, 2, 3, 1}).contiguous();
}

Tensor map_of(const Tensor& pixels) {
  return pixels.permute({0, 3, 1, 2});
}

}  // namespace

Tensor linear_by_rows(const KernelSet& kernels, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t K = x.size(-1), N = weight.size(0), wide = rounded_to_panel(N);
  const Tensor in = x.detach().reshape({-1, K}).contiguous(), w = plain_weight(weight, {N, K}, "weight");
  AlignedBuffer<float> start(wide);
  if (bias.defined()) std::copy_n(floats(plain_weight(bias, {N}, "bias")), N, start.data());
  const int64_t R = in.size(0), chunk = chunk_rows(R, kChunksWanted);
  const PackedWeights packed = PackedWeights::forward(kernels.format, floats(w), N, K);
  Tensor out = torch::empty({R, wide});
  parallel_if_worth((R + chunk - 1) / chunk, 2.0 * static_cast<double>(R * K * wide), [&](int64_t c, int) {
    const int64_t first = c * chunk, n = std::min(chunk, R - first);
    Activations& rows = kept_operand(OperandRole::kInput, kernels.format, chunk, K);
    operand_from_rows(kernels, n, floats(in) + first * K, K, rows);
    gemm(kernels, n, rows, packed,
         StoreRows{out.data_ptr<float>() + first * wide, wide, bias.defined() ? start.data() : nullptr});
  });
  auto sizes = x.sizes().vec();
  sizes.back() = N;
  return out.narrow(1, 0, N).reshape(sizes);
}

Tensor convolution_by_rows(const KernelSet& kernels, const Tensor& x, const Tensor& weight,
                           const Tensor& bias, int64_t stride) {
  const Tensor in = pixels_of(x);
  const int64_t B = in.size(0), H = in.size(1), W = in.size(2), C = in.size(3), N = weight.size(0),
                side = weight.size(2);
  const Tensor w = plain_weight(weight, {N, C, side, side}, "weight"),
               b = bias.defined() ? plain_weight(bias, {N}, "bias") : Tensor();
  const ConvolutionWeights packed(floats(w), b.defined() ? floats(b) : nullptr, N, C, side);
  const int64_t height = (H - side) / stride + 1, width = (W - side) / stride + 1;
  Tensor out = torch::empty({B, height, width, N});
  // An image alone is cut, so that every thread has a part of it.
  const int64_t parts = B >= threads() ? 1 : std::min<int64_t>(height, threads());
  parallel_if_worth(B * parts, 2.0 * static_cast<double>(out.numel() * packed.depth()), [&](int64_t i, int) {
    const int64_t image = i / parts, first = height * (i % parts) / parts,
                  end = height * (i % parts + 1) / parts;
    convolution(kernels, end - first,
                {&packed, floats(in) + (image * H + first * stride) * W * C, W, stride,
                 out.data_ptr<float>() + (image * height + first) * width * N, width});
  });
  return map_of(out);
}

Tensor depthwise_by_rows(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor in = pixels_of(x);
  const int64_t B = in.size(0), H = in.size(1), W = in.size(2), C = in.size(3), height = H - 2, width = W - 2;
  check_shape(weight, {C, 1, 3, 3}, "weight of a depthwise 3x3 convolution");
  const Tensor taps = weight.detach().permute({2, 3, 1, 0}).contiguous();  // (3, 3, 1, C)
  Tensor out = bias.defined() ? bias.detach().expand({B, height, width, C}).contiguous()
                              : torch::zeros({B, height, width, C});
  float* sums = out.data_ptr<float>();
  constexpr double kOfAPixel = 9 * 8;  // waits for memory: a multiply-add counts for several
  parallel_if_worth(B * height, kOfAPixel * static_cast<double>(out.numel()), [&](int64_t line, int) {
    const int64_t image = line / height, y = line % height;
    for (int64_t tap = 0; tap < 9; ++tap) {
      const float *from = floats(in) + ((image * H + y + tap / 3) * W + tap % 3) * C,
                  *factor = floats(taps) + tap * C;
      float* to = sums + line * width * C;
      for (int64_t i = 0; i < width; ++i, from += C, to += C) {
#pragma omp simd
        for (int64_t c = 0; c < C; ++c) to[c] += factor[c] * from[c];
      }
    }
  });
  return map_of(out);
}

Tensor upsample_by_rows(const KernelSet& kernels, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t B = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), N = weight.size(1),
                s = weight.size(2);
  check_shape(weight, {C, N, s, s}, "weight of an upsampling");
  const Tensor by_place = weight.detach().permute({2, 3, 1, 0}).reshape({s * s * N, C});
  const Tensor parts =
      linear_by_rows(kernels, pixels_of(x), by_place, bias.defined() ? bias.detach().repeat({s * s}) : bias);
  return map_of(parts.view({B, H, W, s, s, N}).permute({0, 1, 3, 2, 4, 5}).reshape({B, s * H, s * W, N}));
}

}  // namespace aha
