#include "aha/nn/trainable_block.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/block_call.h"
#include "aha/nn/chunks.h"
#include "aha/nn/plain_tensors.h"

namespace aha {
namespace {

// Of the backward pass, for blocks where all tokens ask and for those where not.
VitBlockScratch& kept_vit_scratch(const VitBlockOptions& options, Format format, const VitBlockState& s) {
  const auto key = std::make_tuple(options, format, s.capacity, s.tokens, s.queries);
  return kept_by_thread<VitBlockScratch>(key, 2, [&] {
    CountedBuffers buffers;
    return VitBlockScratch(options, format, buffers, s.capacity, s.tokens, {s.queries}, true);
  });
}

}  // namespace

struct TrainableBlock::Shared {
  VitBlockOptions options;
  const KernelSet* kernels;
  std::shared_ptr<ChunkPool<VitBlockState>> pool = std::make_shared<ChunkPool<VitBlockState>>();
};

struct TrainableBlock::Call : BlockCall {
  std::shared_ptr<Shared> shared;
  int64_t queries = 0, tokens = 0, chunk = 0;
  Tensor cos, sin;  // undefined = no rotary positions
  std::vector<ChunkPool<VitBlockState>::Taken> chunks;

  VitBlock packed(const VitBlockLinears& linears, Pass pass) const {
    RopeAngles rope;
    if (cos.defined()) rope = {floats(cos), floats(sin), tokens - cos.size(0)};
    return VitBlock(shared->options, linears, *shared->kernels,
                    queries == tokens ? VitBlock::Queries::kAll : VitBlock::Queries::kFirst, pass, rope);
  }

  Tensor forward(const Tensor& x, at::TensorList weights, bool save) override {
    const Tensor in = x.detach().contiguous();  // (B, T, D)
    const int64_t B = in.size(0), T = tokens, Q = queries, D = in.size(2);
    const auto& options = shared->options;
    const Format format = shared->kernels->format;
    chunk = chunk_images(B, T);
    const VitBlock block =
        packed(linears_of(VitBlockWeights::from_list(weights).plain(options), options), Pass::kForward);
    Tensor out = torch::empty({B, Q, D});
    chunks.resize((B + chunk - 1) / chunk);
    parallel_for(std::ssize(chunks), [&](int64_t c, int) {
      const int64_t first = c * chunk, n = std::min(chunk, B - first);
      auto state = shared->pool->take(
          [&](const VitBlockState& s) { return s.capacity >= chunk && s.tokens == T && s.queries == Q; },
          [&] {
            CountedBuffers buffers;
            return std::make_unique<VitBlockState>(options, format, buffers, chunk, T, Q,
                                                   VitBlockKeep::kForAllGradients);
          });
      block.forward(*state, n, floats(in) + first * T * D, out.data_ptr<float>() + first * Q * D,
                    state->context, state->hidden, save);
      if (save) chunks[c] = std::move(state);
    });
    return out;
  }

  std::vector<Tensor> backward(const Tensor& grad, const Tensor&, at::TensorList weights) override {
    const Tensor dout = grad.contiguous();  // (B, Q, D)
    const auto& options = shared->options;
    const KernelSet& kernels = *shared->kernels;
    const int64_t B = dout.size(0), T = tokens, Q = queries, D = dout.size(2);
    const VitBlockWeights plain = VitBlockWeights::from_list(weights).plain(options);
    const VitBlockLinears linears = linears_of(plain, options);
    const VitBlock block = packed(linears, Pass::kBackward);
    const GradientSums places = gradient_sums(options);

    Tensor dx = torch::empty({B, T, D});
    const Tensor total = sum_over_chunks(std::ssize(chunks), places.size(), [&](int64_t c, float* sums) {
      const int64_t first = c * chunk, n = std::min(chunk, B - first);
      const VitBlockState& state = *chunks[c];
      VitBlockScratch& scratch = kept_vit_scratch(options, kernels.format, state);
      const float* from = floats(dout) + first * Q * D;
      operand_from_rows(kernels, n * Q, from, D, scratch.stream);
      block.backward(state, n, scratch,
                     {.dout = from, .dx = dx.data_ptr<float>() + first * T * D, .sums = sums});
    });

    std::vector<Tensor> out = {dx};
    for (const Tensor& weight : plain.list()) out.push_back(torch::zeros_like(weight));
    const VitBlockLinears to = linears_of(VitBlockWeights::from_list(at::TensorList(out).slice(1)), options);
    parallel_for(kVitLinears, [&](int64_t i, int) {
      unfold(linears[i], floats(total) + places.weight(static_cast<int>(i)),
             floats(total) + places.bias(static_cast<int>(i)), to[i]);
    });
    return out;
  }
};

TrainableBlock::TrainableBlock(const VitBlockOptions& options, const KernelSet& kernels)
    : shared_(std::make_shared<Shared>(Shared{options, &kernels})) {
  if (!fits(options))
    throw input_error(
        "trainable block: expected widths of tokens, heads and MLP in multiples of 32, found {} tokens' "
        "channels in {} heads and {} of the MLP",
        options.width, options.heads, options.hidden);
}

TrainableBlock::~TrainableBlock() = default;

Tensor TrainableBlock::forward(const Tensor& x, const VitBlockWeights& weights, int64_t first_tokens,
                               const RopeTable* rope) {
  check_shape(x, {-1, -1, shared_->options.width}, "tokens");
  if (!x.is_cpu() || x.scalar_type() != torch::kFloat32)
    throw input_error("tokens of a trainable block: expected float32 on the CPU, found {} on {}",
                      c10::toString(x.scalar_type()), x.device().str());
  if (first_tokens < 0 || first_tokens > x.size(1))
    throw input_error("first tokens: expected 0..{}, found {}", x.size(1), first_tokens);
  if (rope && (rope->cos.dim() != 2 || rope->cos.size(0) > x.size(1) ||
               rope->cos.size(1) != shared_->options.head_width()))
    throw input_error("rotary positions: expected at most {} rows of {}, found {}", x.size(1),
                      shared_->options.head_width(), fmt::join(rope->cos.sizes(), " x "));
  auto call = c10::make_intrusive<Call>();
  call->shared = shared_;
  call->tokens = x.size(1);
  call->queries = first_tokens > 0 ? first_tokens : x.size(1);
  if (rope) {
    call->cos = plain_from(rope->cos);
    call->sin = plain_from(rope->sin);
  }
  return run_block(call, x, weights.list());
}

}  // namespace aha
