#include "aha/nn/trainable_conv_block.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/block_call.h"
#include "aha/nn/chunks.h"
#include "aha/nn/plain_tensors.h"

namespace aha {
namespace {

// (B, H, W, D), contiguous.
Tensor pixel_rows(const Tensor& x) {
  return x.detach().permute({0, 2, 3, 1}).contiguous();
}

// A chunk of images is one piece.
struct ConvChunk {
  int64_t images;
  ConvNextBlockState state;
  Activations hidden;
};

// What a chunk needs for itself.
struct ConvScratch {
  ConvScratch(Format format, int64_t rows, int64_t width, int64_t hidden)
      : dhidden(format, rows, hidden), convolved(rows * width), dxhat(rows * width) {
    dout.emplace_back(format, rows, width);
  }
  PieceOperands dout;
  Activations dhidden;
  AlignedBuffer<float> convolved,
      dxhat;  // the depthwise convolution's output, later its gradient; of the normalized pixels
};

ConvScratch& kept_conv_scratch(Format format, int64_t rows, int64_t width, int64_t hidden) {
  constexpr size_t kStages = 4;
  return kept_by_thread<ConvScratch>(std::make_tuple(format, rows, width, hidden), kStages,
                                     [&] { return ConvScratch(format, rows, width, hidden); });
}

}  // namespace

struct TrainableConvBlock::Shared {
  int64_t width;
  double eps;
  const KernelSet* kernels;
  std::shared_ptr<ChunkPool<ConvChunk>> pool = std::make_shared<ChunkPool<ConvChunk>>();
};

struct TrainableConvBlock::Call : BlockCall {
  std::shared_ptr<Shared> shared;
  std::vector<ChunkPool<ConvChunk>::Taken> chunks;

  bool needs_input() const override { return true; }

  Tensor forward(const Tensor& x, at::TensorList weights, bool save) override {
    const Tensor in = pixel_rows(x);
    const int64_t B = in.size(0), H = in.size(1), W = in.size(2), D = in.size(3),
                  chunk = chunk_images(B, H * W);
    const Format format = shared->kernels->format;
    const ConvNextBlockWeights plain = ConvNextBlockWeights::from_list(weights).plain();
    const ConvNextBlock block(plain, shared->eps, *shared->kernels);
    const int64_t F = plain.fc1_weight.size(0);
    Tensor out = torch::empty_like(in);
    chunks.resize((B + chunk - 1) / chunk);
    parallel_for(std::ssize(chunks), [&](int64_t c, int) {
      const int64_t first = c * chunk, at = first * H * W * D;
      const LinePieces pieces{H, W, chunk * H};
      auto state = shared->pool->take(
          [&](const ConvChunk& s) {
            return s.images == chunk && s.state.pieces.lines == H && s.state.pieces.line_pixels == W;
          },
          [&] {
            CountedBuffers buffers;
            return std::make_unique<ConvChunk>(
                ConvChunk{chunk, ConvNextBlockState(pieces, format, buffers, chunk, D, F, true),
                          Activations(format, chunk * H * W, F)});
          });
      ConvScratch& scratch = kept_conv_scratch(format, chunk * H * W, D, F);
      block.forward(state->state, std::min(chunk, B - first), floats(in) + at, out.data_ptr<float>() + at,
                    scratch.convolved.data(), state->hidden, save);
      if (save) chunks[c] = std::move(state);
    });
    return out.permute({0, 3, 1, 2});
  }

  std::vector<Tensor> backward(const Tensor& grad, const Tensor& x, at::TensorList weights) override {
    const KernelSet& kernels = *shared->kernels;
    const Tensor in = pixel_rows(x), dout = pixel_rows(grad);  // (B, H, W, D)
    const int64_t B = in.size(0), pixels = in.size(1) * in.size(2), D = in.size(3),
                  chunk = chunk_images(B, pixels);
    const ConvNextBlockWeights plain = ConvNextBlockWeights::from_list(weights).plain();
    const ConvNextBlock block(plain, shared->eps, kernels, Pass::kBackward);

    Tensor dx = dout.clone();
    const Tensor total = sum_over_chunks(std::ssize(chunks), block.sums_size(), [&](int64_t c, float* sums) {
      const int64_t first = c * chunk, images = std::min(chunk, B - first), at = first * pixels * D;
      const ConvChunk& kept = *chunks[c];
      ConvScratch& s = kept_conv_scratch(kernels.format, chunk * pixels, D, plain.fc1_weight.size(0));
      operand_from_rows(kernels, images * pixels, floats(dout) + at, D, s.dout[0]);
      block.backward(kept.state, images,
                     {.dx = dx.data_ptr<float>() + at,
                      .operand = &s.dout,
                      .rows = s.dxhat.data(),
                      .dy = s.convolved.data(),
                      .hidden = &s.dhidden,
                      .sums = sums,
                      .x = floats(in) + at,
                      .kept_hidden = &kept.hidden});
    });

    std::vector<Tensor> out = {dx.permute({0, 3, 1, 2})};
    for (const Tensor& weight : plain.list()) out.push_back(torch::zeros_like(weight));
    block.unfold_sums(plain, floats(total), ConvNextBlockWeights::from_list(at::TensorList(out).slice(1)));
    return out;
  }
};

TrainableConvBlock::TrainableConvBlock(int64_t width, double eps, const KernelSet& kernels)
    : shared_(std::make_shared<Shared>(Shared{width, eps, &kernels})) {
  if (!fits(width))
    throw input_error("trainable ConvNeXt block: expected a width in multiples of 32, found {}", width);
}

TrainableConvBlock::~TrainableConvBlock() = default;

Tensor TrainableConvBlock::forward(const Tensor& x, const ConvNextBlockWeights& weights) {
  check_shape(x, {-1, shared_->width, -1, -1}, "pixels");
  if (!x.is_cpu() || x.scalar_type() != torch::kFloat32)
    throw input_error("pixels of a trainable ConvNeXt block: expected float32 on the CPU, found {} on {}",
                      c10::toString(x.scalar_type()), x.device().str());
  auto call = c10::make_intrusive<Call>();
  call->shared = shared_;
  return run_block(call, x, weights.list());
}

}  // namespace aha
