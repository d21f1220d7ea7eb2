#include "aha/nn/trainable_block.h"

#include <cstring>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/attention/attention.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/folded_product.h"
#include "aha/nn/trainable_parts.h"

namespace aha {
namespace {

enum Part { kQkv, kProj, kFc1, kFc2, kParts };

// The products in the form of the kernels, for one direction.
struct Packs {
  PackedWeights qkv, q, kv, proj, fc1, fc2;  // qkv, or q and kv where not all tokens ask
};

// What a chunk of images leaves for the way back.
struct Chunk {
  int64_t capacity, tokens, queries;
  Activations xhat1, xhat_q, context, xhat2, hidden;
  Slopes gelu_derivative;
  Heads q, k, v;
  AlignedBuffer<float> rstd1, rstd_q, rstd2, log_sum_exp;
};

// What the way back needs for itself: one a thread and kind of block, kept.
struct Scratch {
  Format format = Format::kF32;
  int64_t images = 0, tokens = 0, queries = 0, heads = 0, width = 0, hidden = 0;
  Activations dx, dmiddle, dhidden, dqkv, dq, dkv;
  Heads dout;
  AlignedBuffer<float> rows, dx_q;
};

std::vector<Tensor> list_of(const TrainableBlockWeights& w) {
  std::vector<Tensor> list = {w.norm1_weight, w.norm1_bias, w.qkv_weight,   w.qkv_bias,
                              w.proj_weight,  w.proj_bias,  w.norm2_weight, w.norm2_bias,
                              w.fc1_weight,   w.fc1_bias,   w.fc2_weight,   w.fc2_bias};
  if (w.scale1.defined()) list.insert(list.end(), {w.scale1, w.scale2});
  return list;
}

// Places in that list: weight, bias, gamma, beta and scale of each product; -1 = none.
struct Places {
  int weight, bias, gamma, beta, scale;
};
constexpr Places kPlaces[kParts] = {
    {2, 3, 0, 1, -1}, {4, 5, -1, -1, 12}, {8, 9, 6, 7, -1}, {10, 11, -1, -1, 13}};

}  // namespace

struct TrainableBlock::Impl {
  TrainableBlockOptions options;
  const KernelSet* kernels;
  ChunkPool<Chunk> pool;

  int64_t head_width() const { return options.width / options.heads; }
  std::unique_ptr<Chunk> take(int64_t images, int64_t tokens, int64_t queries);
  Scratch& scratch(const Chunk& chunk) const;

  // Values of list_of(); whatever is not plain float32 becomes it.
  std::vector<Tensor> plain(at::TensorList weights) const;
  std::array<MasterProduct, kParts> masters(const std::vector<Tensor>& weights) const;
  std::array<FoldedProduct, kParts> fold(const std::array<MasterProduct, kParts>& masters) const;
  Packs pack(const std::array<FoldedProduct, kParts>& folded, bool whole, bool back) const;

  void forward(Chunk& c, int64_t images, const Packs& packs, const std::array<FoldedProduct, kParts>& folded,
               const float* x, float* out, bool save) const;
  // sums: the weight and bias gradients of all parts, added to. dx: written.
  void backward(const Chunk& c, int64_t images, const Packs& packs, const float* dout, float* sums,
                float* dx) const;

  // dW' and db' of a part within the partial sums.
  int64_t outputs(int part) const {
    return part == kQkv ? 3 * options.width : part == kFc1 ? options.hidden : options.width;
  }
  int64_t inputs(int part) const { return part == kFc2 ? options.hidden : options.width; }
  int64_t offset(int part) const {
    int64_t at = 0;
    for (int p = 0; p < part; ++p) at += outputs(p) * (inputs(p) + 1);
    return at;
  }
};

std::unique_ptr<Chunk> TrainableBlock::Impl::take(int64_t images, int64_t tokens, int64_t queries) {
  if (auto held = pool.take([&](const Chunk& c) {
        return c.capacity >= images && c.tokens == tokens && c.queries == queries;
      }))
    return held;
  const Format format = kernels->format;
  const int64_t D = options.width, F = options.hidden, R = images * tokens, Rq = images * queries;
  const bool whole = queries == tokens;
  const auto cut = [&](int64_t count) { return Heads(format, images, options.heads, count, head_width()); };
  return std::make_unique<Chunk>(Chunk{.capacity = images,
                                       .tokens = tokens,
                                       .queries = queries,
                                       .xhat1 = Activations(format, R, D),
                                       .xhat_q = Activations(format, whole ? 0 : Rq, D),
                                       .context = Activations(format, Rq, D),
                                       .xhat2 = Activations(format, Rq, D),
                                       .hidden = Activations(format, Rq, F),
                                       .gelu_derivative = Slopes(format, Rq, F),
                                       .q = cut(queries),
                                       .k = cut(tokens),
                                       .v = cut(tokens),
                                       .rstd1 = AlignedBuffer<float>(R),
                                       .rstd_q = AlignedBuffer<float>(whole ? 0 : Rq),
                                       .rstd2 = AlignedBuffer<float>(Rq),
                                       .log_sum_exp = AlignedBuffer<float>(Rq * options.heads)});
}

Scratch& TrainableBlock::Impl::scratch(const Chunk& c) const {
  static thread_local std::array<Scratch, 2> kept;  // of blocks that are whole, and of those that are not
  const bool whole = c.queries == c.tokens;
  Scratch& s = kept[whole ? 0 : 1];
  const Format format = kernels->format;
  const int64_t D = options.width, F = options.hidden;
  if (s.format == format && s.images == c.capacity && s.tokens == c.tokens && s.queries == c.queries &&
      s.heads == options.heads && s.width == D && s.hidden == F)
    return s;
  const int64_t R = c.capacity * c.tokens, Rq = c.capacity * c.queries;
  s = {};
  s = Scratch{.format = format,
              .images = c.capacity,
              .tokens = c.tokens,
              .queries = c.queries,
              .heads = options.heads,
              .width = D,
              .hidden = F,
              .dx = Activations(format, Rq, D),
              .dmiddle = Activations(format, Rq, D),
              .dhidden = Activations(format, Rq, F),
              .dqkv = Activations(format, whole ? R : 0, 3 * D),
              .dq = Activations(format, whole ? 0 : Rq, D),
              .dkv = Activations(format, whole ? 0 : R, 2 * D),
              .dout = Heads(format, c.capacity, options.heads, c.queries, head_width()),
              .rows = AlignedBuffer<float>(R * D),
              .dx_q = AlignedBuffer<float>(whole ? 0 : Rq * D)};
  return s;
}

std::vector<Tensor> TrainableBlock::Impl::plain(at::TensorList weights) const {
  const int64_t D = options.width, F = options.hidden;
  const std::vector<std::vector<int64_t>> shapes = {{D}, {D},    {3 * D, D}, {3 * D}, {D, D}, {D}, {D},
                                                    {D}, {F, D}, {F},        {D, F},  {D},    {D}, {D}};
  return plain_weights(weights, shapes, "a trainable block");
}

std::array<MasterProduct, kParts> TrainableBlock::Impl::masters(const std::vector<Tensor>& weights) const {
  std::array<MasterProduct, kParts> out;
  const auto at = [&](int place) {
    return place >= 0 && place < static_cast<int>(weights.size()) ? floats(weights[place]) : nullptr;
  };
  for (int p = 0; p < kParts; ++p) {
    const Places& place = kPlaces[p];
    MasterProduct& m = out[p];
    m = {outputs(p),
         inputs(p),
         at(place.weight),
         at(place.bias),
         at(place.gamma),
         at(place.beta),
         std::vector<float>(outputs(p), 1.0f)};
    if (const float* scale = at(place.scale)) m.scale.assign(scale, scale + m.outputs);
  }
  const float query_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(head_width())));
  std::fill_n(out[kQkv].scale.begin(), options.width, query_scale);
  return out;
}

std::array<FoldedProduct, kParts> TrainableBlock::Impl::fold(const std::array<MasterProduct, kParts>& masters) const {
  std::array<FoldedProduct, kParts> out;
  parallel_for(kParts, [&](int64_t p, int) { out[p] = folded(masters[p]); });
  return out;
}

Packs TrainableBlock::Impl::pack(const std::array<FoldedProduct, kParts>& folded, bool whole, bool back) const {
  const int64_t D = options.width, F = options.hidden;
  Packs packs;
  struct Job {
    PackedWeights* to;
    const float* weight;
    int64_t outputs, inputs;
  };
  std::vector<Job> jobs = {{&packs.proj, folded[kProj].weight.data(), D, D},
                           {&packs.fc1, folded[kFc1].weight.data(), F, D},
                           {&packs.fc2, folded[kFc2].weight.data(), D, F}};
  const float* qkv = folded[kQkv].weight.data();
  if (whole)
    jobs.push_back({&packs.qkv, qkv, 3 * D, D});
  else
    jobs.insert(jobs.end(), {{&packs.q, qkv, D, D}, {&packs.kv, qkv + D * D, 2 * D, D}});
  parallel_for(static_cast<int64_t>(jobs.size()), [&](int64_t i, int) {
    const Job& job = jobs[i];
    *job.to = back ? PackedWeights::backward(kernels->format, job.weight, job.outputs, job.inputs)
                   : PackedWeights::forward(kernels->format, job.weight, job.outputs, job.inputs);
  });
  return packs;
}

void TrainableBlock::Impl::forward(Chunk& c, int64_t images, const Packs& packs,
                                   const std::array<FoldedProduct, kParts>& folded, const float* x, float* out,
                                   bool save) const {
  const KernelSet& k = *kernels;
  const int64_t D = options.width, T = c.tokens, Q = c.queries, R = images * T, Rq = images * Q;
  const auto eps = static_cast<float>(options.eps);
  const float* qkv_bias = folded[kQkv].bias.data();
  for (int64_t b = 0; b < images; ++b) std::memcpy(out + b * Q * D, x + b * T * D, sizeof(float) * Q * D);
  layer_norm(k, R, x, D, eps, c.xhat1, c.rstd1.data());
  if (Q == T) {
    gemm(k, R, c.xhat1, packs.qkv, StoreHeads{{&c.q, &c.k, &c.v}, qkv_bias});
  } else {
    gemm(k, R, c.xhat1, packs.kv, StoreHeads{{&c.k, &c.v, nullptr}, qkv_bias + D});
    layer_norm(k, Rq, out, D, eps, c.xhat_q, c.rstd_q.data());
    gemm(k, Rq, c.xhat_q, packs.q, StoreHeads{{&c.q, nullptr, nullptr}, qkv_bias});
  }
  attention_forward(k, {&c.q, &c.k, &c.v, images}, c.context, c.log_sum_exp.data());
  gemm(k, Rq, c.context, packs.proj, AddToRows{out, D, folded[kProj].bias.data()});
  layer_norm(k, Rq, out, D, eps, c.xhat2, c.rstd2.data());
  gemm(k, Rq, c.xhat2, packs.fc1,
       GeluToActivations{&c.hidden, folded[kFc1].bias.data(), save ? &c.gelu_derivative : nullptr});
  gemm(k, Rq, c.hidden, packs.fc2, AddToRows{out, D, folded[kFc2].bias.data()});
}

void TrainableBlock::Impl::backward(const Chunk& c, int64_t images, const Packs& packs, const float* dout,
                                    float* sums, float* dx) const {
  const KernelSet& k = *kernels;
  Scratch& s = scratch(c);
  const int64_t D = options.width, T = c.tokens, Q = c.queries, R = images * T, Rq = images * Q;
  const bool whole = Q == T;
  const auto learn = [&](int part, int64_t rows, const Activations& dy, const Activations& in,
                         int64_t first_output = 0) {
    const int64_t K = inputs(part);
    float* weight = sums + offset(part);
    weight_gradient(k, rows,
                    {&dy, &in, weight + first_output * K, K, weight + outputs(part) * K + first_output});
  };

  float* stream = whole ? dx : s.dx_q.data();  // gradient of the tokens that ask, (Rq, D)
  std::memcpy(stream, dout, sizeof(float) * Rq * D);
  operand_from_rows(k, Rq, dout, D, s.dx);
  learn(kFc2, Rq, s.dx, c.hidden);
  gemm(k, Rq, s.dx, packs.fc2, ScaleToActivations{&s.dhidden, &c.gelu_derivative});
  learn(kFc1, Rq, s.dhidden, c.xhat2);
  gemm(k, Rq, s.dhidden, packs.fc1, StoreRows{s.rows.data(), D});
  layer_norm_backward(k, Rq, {s.rows.data(), D, &c.xhat2, c.rstd2.data(), stream, D, &s.dmiddle});
  learn(kProj, Rq, s.dmiddle, c.context);
  gemm(k, Rq, s.dmiddle, packs.proj, StoreHeads{{&s.dout, nullptr, nullptr}});
  const AttentionInput attention = {&c.q, &c.k, &c.v, images};
  if (whole) {
    attention_backward(k, attention, {&s.dout, c.log_sum_exp.data(), &s.dqkv, 0, &s.dqkv, D, &s.dqkv, 2 * D});
    learn(kQkv, R, s.dqkv, c.xhat1);
    gemm(k, R, s.dqkv, packs.qkv, StoreRows{s.rows.data(), D});
  } else {
    attention_backward(k, attention, {&s.dout, c.log_sum_exp.data(), &s.dq, 0, &s.dkv, 0, &s.dkv, D});
    learn(kQkv, Rq, s.dq, c.xhat_q);
    gemm(k, Rq, s.dq, packs.q, StoreRows{s.rows.data(), D});
    layer_norm_backward(k, Rq, {s.rows.data(), D, &c.xhat_q, c.rstd_q.data(), stream, D, nullptr});
    std::memset(dx, 0, sizeof(float) * R * D);
    for (int64_t b = 0; b < images; ++b)
      std::memcpy(dx + b * T * D, stream + b * Q * D, sizeof(float) * Q * D);
    learn(kQkv, R, s.dkv, c.xhat1, D);
    gemm(k, R, s.dkv, packs.kv, StoreRows{s.rows.data(), D});
  }
  layer_norm_backward(k, R, {s.rows.data(), D, &c.xhat1, c.rstd1.data(), dx, D, nullptr});
}

struct TrainableBlockFunction : torch::autograd::Function<TrainableBlockFunction> {
  using Impl = TrainableBlock::Impl;
  struct State : torch::CustomClassHolder {
    std::shared_ptr<Impl> block;
    std::vector<std::unique_ptr<Chunk>> chunks;
    int64_t chunk = 0, tokens = 0, queries = 0;
    ~State() override {
      for (auto& chunk : chunks)
        if (chunk) block->pool.give_back(std::move(chunk));
    }
  };

  static Tensor run(const std::shared_ptr<Impl>& block, const Tensor& x, at::TensorList weights,
                    int64_t queries, State* keep) {
    const Tensor in = x.detach().contiguous();  // (B, T, D)
    const int64_t B = in.size(0), T = in.size(1), D = in.size(2);
    const int64_t chunk = chunk_images(B, T), chunks = (B + chunk - 1) / chunk;
    const auto values = block->plain(weights);
    const auto folded = block->fold(block->masters(values));
    const Packs packs = block->pack(folded, queries == T, false);
    Tensor out = torch::empty({B, queries, D});
    if (keep) {
      keep->block = block;
      keep->chunk = chunk;
      keep->tokens = T;
      keep->queries = queries;
      keep->chunks.resize(chunks);
    }
    parallel_for(chunks, [&](int64_t c, int) {
      const int64_t first = c * chunk, n = std::min(chunk, B - first);
      auto state = block->take(chunk, T, queries);
      block->forward(*state, n, packs, folded, floats(in) + first * T * D,
                     out.data_ptr<float>() + first * queries * D, keep != nullptr);
      if (keep)
        keep->chunks[c] = std::move(state);
      else
        block->pool.give_back(std::move(state));
    });
    return out;
  }

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, at::TensorList weights,
                        const std::shared_ptr<Impl>& block, int64_t queries) {
    auto state = c10::make_intrusive<State>();
    Tensor out = run(block, x, weights, queries, state.get());
    context->save_for_backward(weights.vec());
    context->saved_data["state"] = c10::IValue::make_capsule(state);
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto holder = context->saved_data["state"].toCapsule();
    const auto& state = static_cast<const State&>(*holder);
    Impl& block = *state.block;
    const Tensor dout = grads[0].detach().to(torch::kFloat32).contiguous();  // (B, Q, D)
    const int64_t B = dout.size(0), T = state.tokens, Q = state.queries, D = dout.size(2);
    const auto chunks = static_cast<int64_t>(state.chunks.size());
    const std::vector<Tensor> weights = block.plain(context->get_saved_variables());
    const auto masters = block.masters(weights);
    const Packs packs = block.pack(block.fold(masters), Q == T, true);

    Tensor dx = torch::empty({B, T, D});
    const Tensor total = sum_over_chunks(chunks, block.offset(kParts), [&](int64_t c, float* sums) {
      const int64_t first = c * state.chunk, n = std::min(state.chunk, B - first);
      block.backward(*state.chunks[c], n, packs, floats(dout) + first * Q * D, sums,
                     dx.data_ptr<float>() + first * T * D);
    });

    torch::autograd::variable_list out = {dx};
    for (const Tensor& weight : weights) out.push_back(torch::zeros_like(weight));
    const auto at = [&](int place) {
      return place >= 0 && place < static_cast<int>(weights.size()) ? out[1 + place].data_ptr<float>()
                                                                    : nullptr;
    };
    parallel_for(kParts, [&](int64_t p, int) {
      const float* d_weight = floats(total) + block.offset(p);
      unfold(masters[p], d_weight, d_weight + masters[p].outputs * masters[p].inputs,
             {at(kPlaces[p].weight), at(kPlaces[p].bias), at(kPlaces[p].gamma), at(kPlaces[p].beta),
              at(kPlaces[p].scale)});
    });
    out.resize(out.size() + 2);  // the block and the number of tokens
    return out;
  }
};

bool TrainableBlock::fits(const TrainableBlockOptions& o) {
  return o.heads > 0 && o.width % 32 == 0 && o.hidden % 32 == 0 && o.width % o.heads == 0 &&
         o.width / o.heads % 32 == 0;
}

TrainableBlock::TrainableBlock(const TrainableBlockOptions& options, const KernelSet& kernels)
    : impl_(std::make_shared<Impl>()) {
  if (!fits(options))
    throw input_error(
        "trainable block: expected widths of tokens, heads and MLP in multiples of 32, found {} tokens' "
        "channels in {} "
        "heads and {} of the MLP",
        options.width, options.heads, options.hidden);
  impl_->options = options;
  impl_->kernels = &kernels;
}

TrainableBlock::~TrainableBlock() = default;

const KernelSet& TrainableBlock::kernels() const {
  return *impl_->kernels;
}

Tensor TrainableBlock::forward(const Tensor& x, const TrainableBlockWeights& weights, int64_t first_tokens) {
  check_shape(x, {-1, -1, impl_->options.width}, "tokens");
  if (!x.is_cpu() || x.scalar_type() != torch::kFloat32)
    throw input_error("tokens of a trainable block: expected float32 on the CPU, found {} on {}",
                      c10::toString(x.scalar_type()), x.device().str());
  if (first_tokens < 0 || first_tokens > x.size(1))
    throw input_error("first tokens: expected 0..{}, found {}", x.size(1), first_tokens);
  const int64_t queries = first_tokens > 0 ? first_tokens : x.size(1);
  const std::vector<Tensor> list = list_of(weights);
  if (!torch::GradMode::is_enabled()) return TrainableBlockFunction::run(impl_, x, list, queries, nullptr);
  return TrainableBlockFunction::apply(x, at::TensorList(list), impl_, queries);
}

}  // namespace aha
