#include "aha/nn/frozen_vit.h"

#include <numeric>

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/frozen_engine.h"
#include "aha/nn/plain_tensors.h"
#include "aha/nn/vit_relevance.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

// x (images, tokens, D) -> `copies` times the mean of each image's tokens, (images, copies, D)
void mean_to_each(int64_t images, int64_t tokens, int64_t D, const float* x, int64_t copies, float* means) {
  for (int64_t b = 0; b < images; ++b) {
    float* mean = means + b * copies * D;
    std::fill_n(mean, D, 0.f);
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t c = 0; c < D; ++c) mean[c] += x[(b * tokens + t) * D + c];
    for (int64_t c = 0; c < D; ++c) mean[c] /= static_cast<float>(tokens);
    for (int64_t i = 1; i < copies; ++i) std::copy_n(mean, D, mean + i * D);
  }
}

// And back: (images, copies, D) -> what each token gets, (images, tokens, D)
void share_of_each(int64_t images, int64_t copies, int64_t D, const float* dmeans, int64_t tokens,
                   float* dx) {
  for (int64_t b = 0; b < images; ++b) {
    float* first = dx + b * tokens * D;
    for (int64_t c = 0; c < D; ++c) {
      float sum = 0;
      for (int64_t i = 0; i < copies; ++i) sum += dmeans[(b * copies + i) * D + c];
      first[c] = sum / static_cast<float>(tokens);
    }
    for (int64_t t = 1; t < tokens; ++t) std::copy_n(first, D, first + t * D);
  }
}

// Back through a norm whose standard deviation is held fixed: (g - mean(g)) / std, g (rows, D).
void centered_and_scaled(int64_t rows, int64_t D, const float* g, const float* rstd, float* to,
                         int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = g + r * D;
    const float mean = std::accumulate(from, from + D, 0.f) / static_cast<float>(D);
    for (int64_t c = 0; c < D; ++c) to[r * stride + c] = (from[c] - mean) * rstd[r];
  }
}

}  // namespace

struct FrozenVit::Body : FrozenBody {
  struct Workspace;
  class TapCollector;

  Body(const FrozenVitWeights& w, const KernelSet& chosen);

  VitBlockOptions block;
  int64_t width, class_tokens, tokens;
  float eps;
  PackedLinear patch;
  PackedWeights patch_back;          // in the form of the other layers
  std::vector<PackedLinear> head;    // one per class token, the final norm folded in, divided by their number
  AlignedBuffer<float> token_table;  // (T, D): prefix tokens, then position + patch bias
  Tensor rope_cos, rope_sin;         // (N, head width); undefined = none
  std::vector<VitBlock> blocks;

  std::unique_ptr<FrozenWorkspace> make_workspace(int64_t images, bool save) const override;
  void forward(FrozenWorkspace& w, int64_t images) const override;
  void backward(FrozenWorkspace& w, int64_t images) const override;
  int64_t packed_bytes() const override;

  void embed(Workspace& w, int64_t images) const;  // from w.patches to w.x

  // The first `count` blocks on all tokens of w.x. Those from `kept` on keep their states, with what a
  // backward pass needs if `save`.
  struct Keep {
    size_t from;
    bool save = false;
  };
  Keep keep_none() const { return {blocks.size()}; }
  using AfterBlock = std::function<void(int block, const VitBlockState& s)>;
  void run_blocks(Workspace& w, int64_t images, size_t count, const Keep& keep,
                  const AfterBlock& after_block = nullptr) const;
  VitBlockState& state_of(Workspace& w, size_t block, const Keep& keep) const;
  void block_forward(Workspace& w, int64_t images, size_t block, VitBlockState& s, bool save) const;
  void class_forward(Workspace& w, int64_t images) const;  // the last block and the head, class tokens alone

  // Norm of what the heads read, (images * class tokens, D), and back from w.dlogits: the gradient of these
  // rows, which is also w.scratch.stream then; with the standard deviation of that norm held fixed if wanted.
  void head_norm(Workspace& w, int64_t images, const float* rows) const;
  float* head_backward(Workspace& w, int64_t images, bool fixed_deviation = false) const;

  // Who only wants to see the gradient that reaches each attention, last block first, ends at block `first`.
  using AtAttention = std::function<void(size_t block, const VitBlockState& s, const Heads& dout)>;
  void backward_blocks(Workspace& w, int64_t images, size_t first = 0,
                       const AtAttention& at_attention = nullptr) const;

  using Show = std::function<void(size_t block, const AttentionSource& source)>;
  void show_plain(Workspace& w, int64_t images, size_t first, const Show& show) const;
  void forward_to_class(Workspace& w, int64_t images, const Keep& keep, const AfterBlock& after_block,
                        bool last_too) const;
  void show_logit(Workspace& w, int64_t images, size_t first, const Show& show, const AfterBlock& after_block,
                  bool last_too) const;  // after_block sees the last block too, on all tokens
  void show_direct(Workspace& w, int64_t images, size_t first, const Show& show,
                   const AfterBlock& after_block, bool last_too) const;  // the same
  void show_read_outs(Workspace& w, int64_t images, size_t first, bool mean, const Show& show) const;
  void visit(const Tensor& pixels, const Tensor& classes, const AttentionVisit& what,
             const AttentionVisitor& visitor, TapCollector* taps);

  // About 1,600 rows per chunk keep the operand of a GEMM in the second-level cache and amortize the weights'
  // way from memory.
  static int64_t most_images(int64_t tokens) {
    return std::clamp<int64_t>((1600 + tokens / 2) / tokens, 1, 64);
  }
  std::shared_ptr<Pool> subset_pool = std::make_shared<Pool>();  // of the number of tokens last asked for
  Taken take_subset(int64_t images, int64_t count);
};

struct FrozenVit::Body::Workspace : FrozenWorkspace {
  // Of images of so many tokens; fewer than the network's are a subset, whose tokens are not made from
  // pixels.
  Workspace(const Body& net, int64_t images, bool save, int64_t tokens);

  int64_t tokens;
  std::vector<VitBlockState> saved;  // one per block on the way to a gradient, else one for all
  VitBlockState last;                // of the last block, class tokens alone
  VitBlockState spare;  // of the last block, all tokens, for who wants to see them on the way to a gradient
  struct ReadOut {
    AlignedBuffer<float> rows;  // what the heads read behind a block, (B * class tokens, D)
    VitBlockState first;        // of its class tokens
  };
  std::vector<ReadOut> read_outs;  // one per block, once asked for
  VitBlockScratch scratch;
  AlignedBuffer<float> x;   // (R, D): residual stream, in the backward pass its gradient
  AlignedBuffer<float> xc;  // the same of the class tokens alone, (B * class tokens, D)
  AlignedBuffer<float> head_rstd;
  std::vector<Activations> head_input;  // one per class token, (B, D)
  Activations dlogits_operand;

  // Of a block whose `queries` first tokens ask.
  VitBlockState block_state(const Body& net, int64_t queries) {
    return VitBlockState(net.block, net.kernels->format, *this, capacity, tokens, queries,
                         saving ? VitBlockKeep::kForInputGradient : VitBlockKeep::kNothing);
  }
  void reserve_read_outs(const Body& net) {
    for (size_t i = read_outs.size(); i < net.blocks.size(); ++i)
      read_outs.push_back({floats(capacity * net.class_tokens * net.width),
                           VitBlockState(net.block, net.kernels->format, *this, capacity, net.class_tokens,
                                         net.class_tokens, VitBlockKeep::kForInputGradient)});
  }
};

FrozenVit::Body::Workspace::Workspace(const Body& net, int64_t images, bool save, int64_t tokens)
    : FrozenWorkspace(images, save), tokens(tokens) {
  const Format format = net.kernels->format;
  const int64_t R = images * tokens, D = net.width, C = net.class_tokens;
  for (size_t i = 0; i < (save ? net.blocks.size() - 1 : 1); ++i) saved.push_back(block_state(net, tokens));
  x = floats(R * D);
  if (tokens == net.tokens) patches = operand(net.pixel_kernels().format, R, net.geometry.columns());
  const std::vector<int64_t> queries =
      C > 0 && C < tokens ? std::vector<int64_t>{tokens, C} : std::vector<int64_t>{tokens};
  scratch = VitBlockScratch(net.block, format, *this, images, tokens, queries, save,
                            rounded_to_panel(net.geometry.columns()));
  if (C > 0) {
    last = block_state(net, C);
    xc = floats(images * C * D);
    head_rstd = floats(images * C);
    logits = floats(images * rounded_to_panel(net.classes));
    for (int64_t h = 0; h < C; ++h) head_input.push_back(operand(format, images, D));
  }
  if (save) {
    dpatches = scratch.rows.data();
    dlogits = floats(images * net.classes);
    dlogits_operand = operand(format, images, net.classes);
  }
}

FrozenVit::Body::Body(const FrozenVitWeights& w, const KernelSet& chosen) : FrozenBody(chosen) {
  const Format format = kernels->format;
  width = w.patch_weight.size(0);
  block = {.width = width,
           .heads = w.heads,
           .hidden = w.blocks.at(0).fc2_weight.size(1),
           .eps = w.eps,
           .swiglu = w.swiglu};
  if (!block.fits())
    throw input_error(
        "the fast engine needs widths of tokens and heads, and of a SwiGLU MLP, that are multiples of 32, "
        "found {} in {} heads and {} of the MLP",
        width, w.heads, block.hidden);
  eps = static_cast<float>(w.eps);
  class_tokens = w.head_weight.empty() ? 0 : w.class_tokens;
  geometry.height = static_cast<int>(w.height);
  geometry.width = static_cast<int>(w.width);
  geometry.patch = static_cast<int>(w.patch);
  geometry.prefix_tokens = static_cast<int>(w.prefix.size(0));
  geometry.mean = w.mean;
  geometry.std = w.std;
  tokens = geometry.tokens();
  images_a_chunk = most_images(tokens);

  const FoldedLinear patch_linear = folded({plain_from(w.patch_weight)});
  patch = PackedLinear(pixel_kernels().format, patch_linear);
  patch_back =
      PackedWeights::backward(format, patch_linear.weight.data(), patch_linear.outputs, patch_linear.inputs);
  token_table = AlignedBuffer<float>(tokens * width);
  const Tensor prefix = plain_from(w.prefix);
  std::copy_n(floats(prefix), prefix.numel(), token_table.data());
  Tensor table =
      w.patch_bias.detach().to(torch::kCPU, torch::kFloat64).unsqueeze(0).expand({geometry.patches(), width});
  if (w.positions.defined()) table = table + w.positions.detach().to(torch::kCPU, torch::kFloat64);
  table = plain_from(table);
  std::copy_n(floats(table), table.numel(), token_table.data() + prefix.numel());

  RopeAngles rope;
  if (w.rope_cos.defined()) {
    rope_cos = plain_from(w.rope_cos);
    rope_sin = plain_from(w.rope_sin);
    rope = {floats(rope_cos), floats(rope_sin), geometry.prefix_tokens};
  }
  for (const auto& given : w.blocks) {
    const bool first_too = class_tokens > 0 && &given == &w.blocks.back();
    blocks.emplace_back(block, linears_of(given.plain(block), block), *kernels,
                        first_too ? VitBlock::Queries::kBoth : VitBlock::Queries::kAll, Pass::kForward, rope);
  }
  for (int64_t h = 0; h < class_tokens; ++h) {
    classes = w.head_weight[h].size(0);
    head.emplace_back(format, folded({plain_from(w.head_weight[h]),
                                      plain_from(w.head_bias[h]),
                                      plain_from(w.norm_weight),
                                      plain_from(w.norm_bias),
                                      {},
                                      classes,
                                      1.0 / static_cast<double>(class_tokens)}));
  }
}

std::unique_ptr<FrozenWorkspace> FrozenVit::Body::make_workspace(int64_t images, bool save) const {
  return std::make_unique<Workspace>(*this, images, save, tokens);
}

FrozenBody::Taken FrozenVit::Body::take_subset(int64_t images, int64_t count) {
  return take_from(
      *subset_pool,
      [&](const FrozenWorkspace& held) {
        return held.capacity >= images && static_cast<const Workspace&>(held).tokens == count;
      },
      [&] { return std::make_unique<Workspace>(*this, images, false, count); });
}

void FrozenVit::Body::head_norm(Workspace& w, int64_t images, const float* rows) const {
  const int64_t C = class_tokens, D = width;
  for (int64_t h = 0; h < C; ++h)
    layer_norm(*kernels, images, rows + h * D, C * D, eps, w.head_input[h], w.head_rstd.data() + h * images);
}

void FrozenVit::Body::class_forward(Workspace& w, int64_t images) const {
  const int64_t stride = rounded_to_panel(classes);
  blocks.back().forward(w.last, images, w.x.data(), w.xc.data(), w.scratch.stream, w.scratch.hidden,
                        w.saving);
  head_norm(w, images, w.xc.data());
  for (int64_t h = 0; h < class_tokens; ++h) {
    const StoreRows first{w.logits.data(), stride, head[h].bias()};
    const AddToRows other{w.logits.data(), stride, head[h].bias()};
    gemm(*kernels, images, w.head_input[h], head[h].forward(), h == 0 ? Epilogue(first) : Epilogue(other));
  }
}

void FrozenVit::Body::block_forward(Workspace& w, int64_t images, size_t i, VitBlockState& s,
                                    bool save) const {
  blocks[i].forward(s, images, w.x.data(), w.x.data(), w.scratch.stream, w.scratch.hidden, save);
}

void FrozenVit::Body::embed(Workspace& w, int64_t images) const {
  gemm(pixel_kernels(), images * tokens, w.patches, patch.forward(),
       StoreWithTable{w.x.data(), width, token_table.data(), tokens});
}

VitBlockState& FrozenVit::Body::state_of(Workspace& w, size_t i, const Keep& keep) const {
  if (i < keep.from) return w.saved[0];
  if (i + 1 < blocks.size()) return w.saved[i];
  if (w.spare.q.tokens() == 0) w.spare = w.block_state(*this, tokens);
  return w.spare;
}

void FrozenVit::Body::run_blocks(Workspace& w, int64_t images, size_t count, const Keep& keep,
                                 const AfterBlock& after_block) const {
  for (size_t i = 0; i < count; ++i) {
    VitBlockState& s = state_of(w, i, keep);
    block_forward(w, images, i, s, keep.save && i >= keep.from);
    if (after_block) after_block(static_cast<int>(i), s);
  }
}

void FrozenVit::Body::forward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  embed(w, images);
  run_blocks(w, images, blocks.size() - 1, w.saving ? Keep{0, true} : keep_none());
  class_forward(w, images);
}

float* FrozenVit::Body::head_backward(Workspace& w, int64_t images, bool fixed_deviation) const {
  const KernelSet& k = *kernels;
  const int64_t C = class_tokens, D = width;
  float *rows = w.scratch.rows.data(), *dxc = w.scratch.of(C).dx.data();
  for (int64_t b = 0; b < images; ++b)
    for (int64_t c = 0; c < classes; ++c) w.dlogits_operand.set(b, c, w.dlogits[b * classes + c]);
  std::memset(dxc, 0, sizeof(float) * images * C * D);
  for (int64_t h = 0; h < C; ++h) {
    gemm(k, images, w.dlogits_operand, head[h].backward(k), StoreRows{rows, D});
    if (fixed_deviation)
      centered_and_scaled(images, D, rows, w.head_rstd.data() + h * images, dxc + h * D, C * D);
    else
      layer_norm_backward(
          k, images,
          {rows, D, &w.head_input[h], w.head_rstd.data() + h * images, dxc + h * D, C * D, nullptr});
  }
  operand_from_rows(k, images * C, dxc, D, w.scratch.stream);
  return dxc;
}

void FrozenVit::Body::backward_blocks(Workspace& w, int64_t images, size_t first,
                                      const AtAttention& at_attention) const {
  float* dxc = head_backward(w, images);
  for (size_t i = blocks.size(); i-- > first;) {
    const bool last = i + 1 == blocks.size();
    VitBlock::Gradient gradient{.dout = last ? dxc : w.x.data(), .dx = w.x.data(), .to_operand = true};
    if (at_attention)
      gradient.at_attention = [&](const VitBlockState& s, const Heads& dout) {
        at_attention(i, s, dout);
        return i > first;
      };
    blocks[i].backward(last ? w.last : w.saved[i], images, w.scratch, gradient);
  }
}

void FrozenVit::Body::backward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  backward_blocks(w, images);
  gemm(*kernels, images * tokens, w.scratch.stream, patch_back,
       StoreRows{w.dpatches, rounded_to_panel(geometry.columns())});
}

void FrozenVit::Body::show_plain(Workspace& w, int64_t images, size_t first, const Show& show) const {
  const Keep keep{first};
  embed(w, images);
  run_blocks(w, images, blocks.size(), keep);
  for (size_t i = blocks.size(); i-- > first;) show(i, attention_of(state_of(w, i, keep)));
}

// The last block is run for the class token alone, and whole where somebody taps it.
void FrozenVit::Body::forward_to_class(Workspace& w, int64_t images, const Keep& keep,
                                       const AfterBlock& after_block, bool last_too) const {
  const size_t last = blocks.size() - 1;
  embed(w, images);
  run_blocks(w, images, last, keep, after_block);
  class_forward(w, images);
  if (!last_too) return;
  VitBlockState& s = state_of(w, last, keep);
  block_forward(w, images, last, s, false);
  after_block(static_cast<int>(last), s);
}

void FrozenVit::Body::show_logit(Workspace& w, int64_t images, size_t first, const Show& show,
                                 const AfterBlock& after_block, bool last_too) const {
  forward_to_class(w, images, {first, true}, after_block, last_too);
  backward_blocks(w, images, first, [&](size_t i, const VitBlockState& s, const Heads& dout) {
    show(i, attention_of(s, &dout));
  });
}

void FrozenVit::Body::show_direct(Workspace& w, int64_t images, size_t first, const Show& show,
                                  const AfterBlock& after_block, bool last_too) const {
  const size_t last = blocks.size() - 1;
  const Keep keep{first};
  w.reserve_read_outs(*this);
  forward_to_class(w, images, keep, after_block, last_too);
  head_backward(w, images, true);
  for (size_t i = blocks.size(); i-- > first;) {
    const Heads& dout = blocks[i].attention_gradient(images, class_tokens, w.scratch);
    if (i == last) {
      show(i, attention_of(w.last, &dout));
      continue;
    }
    const VitBlockState& whole = state_of(w, i, keep);
    VitBlockState& asked = w.read_outs[i].first;
    blocks[i].first_queries(whole, asked, images);
    show(i, {&asked.q, &whole.k, &whole.v, &asked.log_sum_exp, &dout});
  }
}

void FrozenVit::Body::show_read_outs(Workspace& w, int64_t images, size_t first, bool mean,
                                     const Show& show) const {
  const size_t last = blocks.size() - 1;
  const int64_t C = class_tokens, D = width, T = tokens;
  const Keep keep{first, mean};
  w.reserve_read_outs(*this);
  embed(w, images);
  run_blocks(w, images, first, keep);
  for (size_t i = first; i < blocks.size(); ++i) {
    float* rows = w.read_outs[i].rows.data();
    if (!mean && i == last) {
      class_forward(w, images);
      std::copy_n(w.xc.data(), images * C * D, rows);
      break;
    }
    VitBlockState& s = state_of(w, i, keep);
    if (!mean)
      for (int64_t b = 0; b < images; ++b) std::copy_n(w.x.data() + b * T * D, C * D, rows + b * C * D);
    block_forward(w, images, i, s, mean);
    if (mean)
      mean_to_each(images, T, D, w.x.data(), C, rows);
    else
      blocks[i].forward_first(s, w.read_outs[i].first, images, rows, w.scratch.stream, w.scratch.hidden);
  }
  for (size_t i = blocks.size(); i-- > first;) {
    head_norm(w, images, w.read_outs[i].rows.data());
    float* dxc = head_backward(w, images);
    const VitBlockState& whole = !mean && i == last ? w.last : state_of(w, i, keep);
    const VitBlockState& asked = mean || i == last ? whole : w.read_outs[i].first;
    float* dx = mean ? w.x.data() : dxc;
    if (mean) {
      share_of_each(images, C, D, dxc, T, dx);
      operand_from_rows(*kernels, images * T, dx, D, w.scratch.stream);
    }
    VitBlock::Gradient gradient{.dout = dx, .dx = dx};
    gradient.at_attention = [&](const VitBlockState& s, const Heads& dout) {
      show(i, {&s.q, &whole.k, &whole.v, &s.log_sum_exp, &dout});
      return false;
    };
    blocks[i].backward(asked, images, w.scratch, gradient);
  }
}

int64_t FrozenVit::Body::packed_bytes() const {
  int64_t bytes = patch.bytes() + patch_back.bytes();
  for (const auto& h : head) bytes += h.bytes();
  for (const auto& b : blocks) bytes += b.bytes();
  return bytes;
}

FrozenVit::FrozenVit(const FrozenVitWeights& weights, Precision precision)
    : FrozenVit(weights, best_kernel_set(precision)) {}

FrozenVit::FrozenVit(const FrozenVitWeights& weights, const KernelSet& kernels)
    : FrozenNetwork(std::make_shared<Body>(weights, kernels)) {}

// What is looked at, collected chunk by chunk.
class FrozenVit::Body::TapCollector {
 public:
  TapCollector(const Body& net, int64_t images, const std::vector<BlockTap>& taps)
      : kernels_(*net.kernels), taps_(taps) {
    for (const BlockTap& tap : taps) {
      if (tap.block < 0 || tap.block >= static_cast<int>(net.blocks.size()))
        throw input_error("a tap of block {}: this network has blocks 0..{}", tap.block,
                          net.blocks.size() - 1);
      found.push_back(tap.class_attention ? torch::empty({images, net.block.heads, 1, net.tokens})
                                          : torch::empty({images, net.tokens, net.width}));
      blocks = std::max<size_t>(blocks, tap.block + 1);
    }
  }

  // After a block has run on the n images from `first` on.
  void take(int block, const VitBlockState& s, const Workspace& w, int64_t first, int64_t n) {
    for (size_t i = 0; i < taps_.size(); ++i) {
      if (taps_[i].block != block) continue;
      const int64_t count = found[i][0].numel();
      float* to = found[i].data_ptr<float>() + first * count;
      if (taps_[i].class_attention)
        for (int64_t b = 0; b < n; ++b) class_attention(kernels_, s, b, to + b * count);
      else
        std::memcpy(to, w.x.data(), sizeof(float) * n * count);
    }
  }

  std::vector<Tensor> found;  // one per tap
  size_t blocks = 0;          // that have to run

 private:
  const KernelSet& kernels_;
  const std::vector<BlockTap>& taps_;
};

void FrozenVit::Body::visit(const Tensor& pixels, const Tensor& wanted, const AttentionVisit& what,
                            const AttentionVisitor& visitor, TapCollector* taps) {
  using Gradient = AttentionVisit::Gradient;
  const auto from = static_cast<size_t>(what.first_block);
  for_chunks(pixels, true, [&](Taken& workspace, int64_t first, int64_t n) {
    // What a visitor computes with libtorch must not depend on how many threads are free.
    const OneThread one_thread;
    auto& w = static_cast<Workspace&>(*workspace);
    ShownAttention shown;
    const auto show = [&](size_t i, const AttentionSource& source) {
      for (int64_t b = 0; b < n; ++b) {
        shown.read(*kernels, source, b);
        visitor(first + b, static_cast<int>(i), shown.attention(), shown.gradient());
      }
    };
    if (what.gradient == Gradient::kNone) return show_plain(w, n, from, show);
    const bool direct = what.gradient == Gradient::kDirect;
    std::fill_n(w.dlogits.data(), n * classes, direct ? -1.f / static_cast<float>(classes) : 0.f);
    for (int64_t b = 0; b < n; ++b) w.dlogits[b * classes + wanted.data_ptr<int64_t>()[first + b]] += 1;
    if (what.gradient == Gradient::kReadOutClass || what.gradient == Gradient::kReadOutMean)
      return show_read_outs(w, n, from, what.gradient == Gradient::kReadOutMean, show);
    const auto take = [&](int block, const VitBlockState& s) {
      if (taps) taps->take(block, s, w, first, n);
    };
    const bool last_too = taps && taps->blocks == blocks.size();
    if (direct)
      show_direct(w, n, from, show, take, last_too);
    else
      show_logit(w, n, from, show, take, last_too);
  });
}

void FrozenVit::visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit& visit,
                                const AttentionVisitor& visitor) {
  check_pixels(pixels);
  auto& net = static_cast<Body&>(body());
  if (net.classes == 0) throw input_error("attention: this network is an encoder without a head");
  if (visit.first_block < 0 || visit.first_block >= std::ssize(net.blocks))
    throw input_error("attention from block {} on: this network has blocks 0..{}", visit.first_block,
                      net.blocks.size() - 1);
  net.visit(pixels, checked_classes(classes, pixels.size(0)), visit, visitor, nullptr);
}

FrozenVit::Relevance FrozenVit::relevance(const Tensor& pixels, const Tensor& classes,
                                          const std::vector<BlockTap>& taps, TokenRelevance rule) {
  check_pixels(pixels);
  auto& net = static_cast<Body&>(body());
  if (net.classes == 0) throw input_error("relevance: this network is an encoder without a head");
  Body::TapCollector collector(net, pixels.size(0), taps);
  const auto depth = static_cast<int64_t>(net.blocks.size());
  const int64_t T = net.tokens;
  Tensor out = torch::zeros({pixels.size(0), T}), by_block;
  const bool direct = rule == TokenRelevance::kDirect;
  if (direct)
    by_block = torch::zeros({pixels.size(0), depth, T});
  else
    out.select(1, 0).fill_(1);
  using Gradient = AttentionVisit::Gradient;
  net.visit(
      pixels, checked_classes(classes, pixels.size(0)), {direct ? Gradient::kDirect : Gradient::kLogit},
      [&](int64_t image, int block, const Tensor& attention, const Tensor& gradient) {
        float* row = out.data_ptr<float>() + image * T;
        if (!direct) return add_relevance(attention, gradient, row);
        float* share = by_block.data_ptr<float>() + (image * depth + block) * T;
        add_contributions(attention, gradient, share);
        for (int64_t t = 0; t < T; ++t) row[t] += share[t];
      },
      &collector);
  return {out, by_block, collector.found};
}

std::vector<Tensor> FrozenVit::tapped(const Tensor& pixels, const std::vector<BlockTap>& taps) {
  check_pixels(pixels);
  auto& net = static_cast<Body&>(body());
  Body::TapCollector collector(net, pixels.size(0), taps);
  net.for_chunks(pixels, false, [&](FrozenBody::Taken& workspace, int64_t first, int64_t n) {
    auto& w = static_cast<Body::Workspace&>(*workspace);
    net.embed(w, n);
    net.run_blocks(w, n, collector.blocks, net.keep_none(),
                   [&](int block, const VitBlockState& s) { collector.take(block, s, w, first, n); });
  });
  return collector.found;
}

Tensor FrozenVit::patch_subset_logits(const Tensor& pixels, const Tensor& patches) {
  check_pixels(pixels);
  check_shape(patches, {pixels.size(0), -1, -1}, "patches");
  auto& net = static_cast<Body&>(body());
  if (net.classes == 0) throw input_error("logits: this network is an encoder without a head");
  if (net.rope_cos.defined())
    throw input_error("a vision transformer with rotary positions cannot run on a part of its tokens");
  const Tensor chosen = patches.to(torch::kCPU, torch::kInt64).contiguous();
  const int64_t B = chosen.size(0), S = chosen.size(1), N = net.geometry.patches();
  if (chosen.numel() > 0 && (chosen.min().item<int64_t>() < 0 || chosen.max().item<int64_t>() >= N))
    throw input_error("patches: expected 0..{}, found {}..{}", N - 1, chosen.min().item<int64_t>(),
                      chosen.max().item<int64_t>());
  const int64_t T = net.tokens, D = net.width, C = net.classes, prefix = net.geometry.prefix_tokens,
                tokens = prefix + chosen.size(2), stride = rounded_to_panel(C);
  Tensor embedded = torch::empty({B, T, D}), out = torch::empty({B, S, C});
  net.for_chunks(pixels, false, [&](FrozenBody::Taken& workspace, int64_t first, int64_t n) {
    auto& w = static_cast<Body::Workspace&>(*workspace);
    net.embed(w, n);
    std::copy_n(w.x.data(), n * T * D, embedded.data_ptr<float>() + first * T * D);
  });
  // One list of B * S subsets, cut into chunks wherever it falls.
  const int64_t chunk = even_chunk(B * S, Body::most_images(tokens));
  parallel_pieces((B * S + chunk - 1) / chunk, [&](int64_t c) {
    const int64_t first = c * chunk, n = std::min(chunk, B * S - first);
    auto workspace = net.take_subset(chunk, tokens);
    auto& w = static_cast<Body::Workspace&>(*workspace);
    for (int64_t i = 0; i < n; ++i) {
      const float* from = embedded.data_ptr<float>() + (first + i) / S * T * D;
      const int64_t* patch = chosen.data_ptr<int64_t>() + (first + i) * chosen.size(2);
      float* to = w.x.data() + i * tokens * D;
      std::copy_n(from, prefix * D, to);
      for (int64_t t = prefix; t < tokens; ++t)
        std::copy_n(from + (prefix + patch[t - prefix]) * D, D, to + t * D);
    }
    net.run_blocks(w, n, net.blocks.size() - 1, net.keep_none());
    net.class_forward(w, n);
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(w.logits.data() + i * stride, C, out.data_ptr<float>() + (first + i) * C);
  });
  return out;
}

}  // namespace aha
