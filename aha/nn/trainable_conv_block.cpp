#include "aha/nn/trainable_conv_block.h"

#include <cstring>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/depthwise/depthwise.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/folded_product.h"
#include "aha/nn/trainable_parts.h"

namespace aha {
namespace {

constexpr int64_t kTaps = DepthwiseWeights::kTaps;

struct Grid {
  int64_t images, height, width;
  int64_t pixels() const { return height * width; }
};

// What a chunk of images leaves for the way back.
struct ConvChunk {
  int64_t rows;
  Activations xhat, hidden;
  Slopes gelu_derivative;
  AlignedBuffer<float> rstd;
};

// What a chunk needs for itself: one a thread, kept.
struct ConvScratch {
  Format format = Format::kF32;
  int64_t rows = 0, width = 0;
  Activations dout, dhidden;
  AlignedBuffer<float> convolved, dxhat;  // the depthwise convolution's output, later its gradient; of the normed pixels
};

enum Weight { kDwWeight, kDwBias, kNormWeight, kNormBias, kFc1Weight, kFc1Bias, kFc2Weight, kFc2Bias, kGamma };

std::vector<Tensor> list_of(const TrainableConvBlockWeights& w) {
  return {w.dw_weight,  w.dw_bias,    w.norm_weight, w.norm_bias, w.fc1_weight,
          w.fc1_bias,   w.fc2_weight, w.fc2_bias,    w.gamma};
}

}  // namespace

struct TrainableConvBlock::Impl {
  int64_t width;
  float eps;
  const KernelSet* kernels;
  ChunkPool<ConvChunk> pool;

  int64_t hidden() const { return 4 * width; }
  std::unique_ptr<ConvChunk> take(int64_t rows);
  ConvScratch& scratch(int64_t rows) const;

  // Values of list_of(); whatever is not plain float32 becomes it.
  std::vector<Tensor> plain(at::TensorList weights) const;
  MasterProduct fc1(const std::vector<Tensor>& weights) const;
  MasterProduct fc2(const std::vector<Tensor>& weights) const;

  // Partial sums of the way back: taps and bias of the convolution, dW' and db' of the two products.
  int64_t taps_at() const { return 0; }
  int64_t fc1_at() const { return width * (kTaps + 1); }
  int64_t fc2_at() const { return fc1_at() + hidden() * (width + 1); }
  int64_t sums() const { return fc2_at() + width * (hidden() + 1); }
};

std::unique_ptr<ConvChunk> TrainableConvBlock::Impl::take(int64_t rows) {
  if (auto held = pool.take([&](const ConvChunk& chunk) { return chunk.rows == rows; })) return held;
  const Format format = kernels->format;
  return std::make_unique<ConvChunk>(ConvChunk{.rows = rows,
                                               .xhat = Activations(format, rows, width),
                                               .hidden = Activations(format, rows, hidden()),
                                               .gelu_derivative = Slopes(format, rows, hidden()),
                                               .rstd = AlignedBuffer<float>(rows)});
}

ConvScratch& TrainableConvBlock::Impl::scratch(int64_t rows) const {
  constexpr size_t kKept = 4;  // stages of a network
  static thread_local std::vector<std::unique_ptr<ConvScratch>> kept;
  for (const auto& held : kept)
    if (held->format == kernels->format && held->rows == rows && held->width == width) return *held;
  if (kept.size() == kKept) kept.erase(kept.begin());
  return *kept.emplace_back(std::make_unique<ConvScratch>(ConvScratch{
      .format = kernels->format,
      .rows = rows,
      .width = width,
      .dout = Activations(kernels->format, rows, width),
      .dhidden = Activations(kernels->format, rows, hidden()),
      .convolved = AlignedBuffer<float>(rows * width),
      .dxhat = AlignedBuffer<float>(rows * width)}));
}

std::vector<Tensor> TrainableConvBlock::Impl::plain(at::TensorList weights) const {
  const int64_t D = width, F = hidden();
  const std::vector<std::vector<int64_t>> shapes = {{D, 1, 7, 7}, {D}, {D}, {D}, {F, D}, {F}, {D, F}, {D}, {D}};
  return plain_weights(weights, shapes, "a trainable ConvNeXt block");
}

MasterProduct TrainableConvBlock::Impl::fc1(const std::vector<Tensor>& w) const {
  return {hidden(),
          width,
          floats(w[kFc1Weight]),
          floats(w[kFc1Bias]),
          floats(w[kNormWeight]),
          floats(w[kNormBias]),
          std::vector<float>(hidden(), 1.0f)};
}

MasterProduct TrainableConvBlock::Impl::fc2(const std::vector<Tensor>& w) const {
  const float* gamma = floats(w[kGamma]);
  return {width,   hidden(), floats(w[kFc2Weight]), floats(w[kFc2Bias]),
          nullptr, nullptr,  std::vector<float>(gamma, gamma + width)};
}

struct TrainableConvBlockFunction : torch::autograd::Function<TrainableConvBlockFunction> {
  using Impl = TrainableConvBlock::Impl;
  struct State : torch::CustomClassHolder {
    std::shared_ptr<Impl> block;
    Grid grid;
    std::vector<std::unique_ptr<ConvChunk>> chunks;
    ~State() override {
      for (auto& chunk : chunks)
        if (chunk) block->pool.give_back(std::move(chunk));
    }
  };

  // (B, H, W, D), contiguous.
  static Tensor pixel_rows(const Tensor& x) { return x.detach().permute({0, 2, 3, 1}).contiguous(); }

  static Tensor run(const std::shared_ptr<Impl>& block, const Tensor& x, at::TensorList weights, State* keep) {
    const KernelSet& k = *block->kernels;
    const Tensor in = pixel_rows(x);
    const Grid grid{in.size(0), in.size(1), in.size(2)};
    const int64_t D = block->width, F = block->hidden();
    const int64_t chunk = chunk_images(grid.images, grid.pixels()), chunks = (grid.images + chunk - 1) / chunk;
    const auto values = block->plain(weights);
    const FoldedProduct fc1 = folded(block->fc1(values)), fc2 = folded(block->fc2(values));
    const auto pack1 = PackedWeights::forward(k.format, fc1.weight.data(), F, D),
               pack2 = PackedWeights::forward(k.format, fc2.weight.data(), D, F);
    const auto taps = DepthwiseWeights::forward(floats(values[kDwWeight]), floats(values[kDwBias]), D);
    Tensor out = torch::empty_like(in);
    if (keep) {
      keep->block = block;
      keep->grid = grid;
      keep->chunks.resize(chunks);
    }
    parallel_for(chunks, [&](int64_t c, int) {
      const int64_t first = c * chunk, images = std::min(chunk, grid.images - first), rows = images * grid.pixels();
      const int64_t at = first * grid.pixels() * D;
      auto state = block->take(chunk * grid.pixels());
      ConvScratch& s = block->scratch(state->rows);
      float* to = out.data_ptr<float>() + at;
      depthwise(k, 0, images * grid.height,
                {floats(in) + at, D, grid.height, grid.width, &taps, s.convolved.data(), D});
      layer_norm(k, rows, s.convolved.data(), D, block->eps, state->xhat, state->rstd.data());
      gemm(k, rows, state->xhat, pack1,
           GeluToActivations{&state->hidden, fc1.bias.data(), keep ? &state->gelu_derivative : nullptr});
      std::memcpy(to, floats(in) + at, sizeof(float) * rows * D);
      gemm(k, rows, state->hidden, pack2, AddToRows{to, D, fc2.bias.data()});
      if (keep)
        keep->chunks[c] = std::move(state);
      else
        block->pool.give_back(std::move(state));
    });
    return out.permute({0, 3, 1, 2});
  }

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, at::TensorList weights,
                        const std::shared_ptr<Impl>& block) {
    auto state = c10::make_intrusive<State>();
    Tensor out = run(block, x, weights, state.get());
    torch::autograd::variable_list saved = weights.vec();
    saved.push_back(x);
    context->save_for_backward(std::move(saved));
    context->saved_data["state"] = c10::IValue::make_capsule(state);
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto holder = context->saved_data["state"].toCapsule();
    const auto& state = static_cast<const State&>(*holder);
    const Impl& block = *state.block;
    const KernelSet& k = *block.kernels;
    const Grid& grid = state.grid;
    const int64_t D = block.width, F = block.hidden(), chunk = chunk_images(grid.images, grid.pixels());
    const auto saved = context->get_saved_variables();
    const Tensor in = pixel_rows(saved.back()), dout = pixel_rows(grads[0].to(torch::kFloat32));  // (B, H, W, D)
    const auto values = block.plain(at::TensorList(saved).slice(0, saved.size() - 1));
    const MasterProduct master1 = block.fc1(values), master2 = block.fc2(values);
    const auto pack1 = PackedWeights::backward(k.format, folded(master1).weight.data(), F, D),
               pack2 = PackedWeights::backward(k.format, folded(master2).weight.data(), D, F);
    const auto turned = DepthwiseWeights::backward(floats(values[kDwWeight]), D);

    Tensor dx = dout.clone();
    const auto chunks = static_cast<int64_t>(state.chunks.size());
    const Tensor total = sum_over_chunks(chunks, block.sums(), [&](int64_t c, float* sums) {
      const int64_t first = c * chunk, images = std::min(chunk, grid.images - first), rows = images * grid.pixels();
      const int64_t at = first * grid.pixels() * D;
      const ConvChunk& kept = *state.chunks[c];
      ConvScratch& s = block.scratch(kept.rows);
      float *d_fc1 = sums + block.fc1_at(), *d_fc2 = sums + block.fc2_at();
      operand_from_rows(k, rows, floats(dout) + at, D, s.dout);
      weight_gradient(k, rows, {&s.dout, &kept.hidden, d_fc2, F, d_fc2 + D * F});
      gemm(k, rows, s.dout, pack2, ScaleToActivations{&s.dhidden, &kept.gelu_derivative});
      weight_gradient(k, rows, {&s.dhidden, &kept.xhat, d_fc1, D, d_fc1 + F * D});
      gemm(k, rows, s.dhidden, pack1, StoreRows{s.dxhat.data(), D});
      float* dconvolved = s.convolved.data();
      std::memset(dconvolved, 0, sizeof(float) * rows * D);
      layer_norm_backward(k, rows, {s.dxhat.data(), D, &kept.xhat, kept.rstd.data(), dconvolved, D, nullptr});
      depthwise_weight_gradient(k, images,
                                {floats(in) + at, dconvolved, D, D, grid.height, grid.width, D,
                                 sums + block.taps_at(), sums + block.taps_at() + D * kTaps});
      depthwise(k, 0, images * grid.height,
                {dconvolved, D, grid.height, grid.width, &turned, dx.data_ptr<float>() + at, D, true});
    });

    torch::autograd::variable_list out = {dx.permute({0, 3, 1, 2})};
    for (const Tensor& weight : values) out.push_back(torch::zeros_like(weight));
    const auto of = [&](Weight which) { return out[1 + which].data_ptr<float>(); };
    const float *taps = floats(total) + block.taps_at(), *d_fc1 = floats(total) + block.fc1_at(),
                *d_fc2 = floats(total) + block.fc2_at();
    for (int64_t c = 0; c < D; ++c)
      for (int64_t tap = 0; tap < kTaps; ++tap)
        of(kDwWeight)[c * kTaps + tap] = taps[(c / kStrip * kTaps + tap) * kStrip + c % kStrip];
    std::memcpy(of(kDwBias), taps + D * kTaps, sizeof(float) * D);
    unfold(master1, d_fc1, d_fc1 + F * D, {of(kFc1Weight), of(kFc1Bias), of(kNormWeight), of(kNormBias), nullptr});
    unfold(master2, d_fc2, d_fc2 + D * F, {of(kFc2Weight), of(kFc2Bias), nullptr, nullptr, of(kGamma)});
    out.resize(out.size() + 1);  // the block
    return out;
  }
};

TrainableConvBlock::TrainableConvBlock(int64_t width, double eps, const KernelSet& kernels)
    : impl_(std::make_shared<Impl>()) {
  if (!fits(width))
    throw input_error("trainable ConvNeXt block: expected a width in multiples of 32, found {}", width);
  impl_->width = width;
  impl_->eps = static_cast<float>(eps);
  impl_->kernels = &kernels;
}

TrainableConvBlock::~TrainableConvBlock() = default;

Tensor TrainableConvBlock::forward(const Tensor& x, const TrainableConvBlockWeights& weights) {
  check_shape(x, {-1, impl_->width, -1, -1}, "pixels");
  if (!x.is_cpu() || x.scalar_type() != torch::kFloat32)
    throw input_error("pixels of a trainable ConvNeXt block: expected float32 on the CPU, found {} on {}",
                      c10::toString(x.scalar_type()), x.device().str());
  const std::vector<Tensor> list = list_of(weights);
  if (!torch::GradMode::is_enabled()) return TrainableConvBlockFunction::run(impl_, x, list, nullptr);
  return TrainableConvBlockFunction::apply(x, at::TensorList(list), impl_);
}

}  // namespace aha
