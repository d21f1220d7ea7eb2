#include "aha/nn/frozen_vit.h"

#include "aha/base/error.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/frozen_engine.h"
#include "aha/nn/plain_tensors.h"
#include "aha/nn/vit_relevance.h"

namespace aha {

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

  // The first `count` blocks on all tokens.
  using AfterBlock = std::function<void(int block, const VitBlockState& s)>;
  void run_blocks(Workspace& w, int64_t images, size_t count, const AfterBlock& after_block) const;
  void block_forward(Workspace& w, int64_t images, size_t block, VitBlockState& s) const;
  void class_forward(Workspace& w, int64_t images) const;  // the last block and the head, class tokens alone

  // Who only wants to see the gradient that reaches each attention, last block first, ends there.
  using AtAttention = std::function<void(const VitBlockState& s, const Heads& dout)>;
  void backward_blocks(Workspace& w, int64_t images, const AtAttention& at_attention) const;
};

struct FrozenVit::Body::Workspace : FrozenWorkspace {
  Workspace(const Body& net, int64_t images, bool save);

  std::vector<VitBlockState> saved;  // one per block on the way to a gradient, else one for all
  VitBlockState last;                // of the last block, class tokens alone
  VitBlockState spare;  // of the last block, all tokens, for who wants to see them on the way to a gradient
  VitBlockScratch scratch;
  AlignedBuffer<float> x;   // (R, D): residual stream, in the backward pass its gradient
  AlignedBuffer<float> xc;  // the same of the class tokens alone, (B * class tokens, D)
  AlignedBuffer<float> head_rstd;
  std::vector<Activations> head_input;  // one per class token, (B, D)
  Activations dlogits_operand;

  // Of a block whose `queries` first tokens ask.
  VitBlockState block_state(const Body& net, int64_t queries) {
    return VitBlockState(net.block, net.kernels->format, *this, capacity, net.tokens, queries,
                         saving ? VitBlockKeep::kForInputGradient : VitBlockKeep::kNothing);
  }
};

FrozenVit::Body::Workspace::Workspace(const Body& net, int64_t images, bool save)
    : FrozenWorkspace(images, save) {
  const Format format = net.kernels->format;
  const int64_t R = images * net.tokens, D = net.width, C = net.class_tokens;
  for (size_t i = 0; i < (save ? net.blocks.size() - 1 : 1); ++i)
    saved.push_back(block_state(net, net.tokens));
  x = floats(R * D);
  patches = operand(net.pixel_kernels().format, R, net.geometry.columns());
  const std::vector<int64_t> queries =
      C > 0 && C < net.tokens ? std::vector<int64_t>{net.tokens, C} : std::vector<int64_t>{net.tokens};
  scratch = VitBlockScratch(net.block, format, *this, images, net.tokens, queries, save,
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
  // About 1,600 rows per chunk keep the operand of a GEMM in the second-level cache and amortize the weights'
  // way from memory.
  images_a_chunk = std::clamp<int64_t>((1600 + tokens / 2) / tokens, 1, 64);

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
  return std::make_unique<Workspace>(*this, images, save);
}

void FrozenVit::Body::class_forward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  const int64_t C = class_tokens, D = width, stride = rounded_to_panel(classes);
  blocks.back().forward(w.last, images, w.x.data(), w.xc.data(), w.scratch.stream, w.scratch.hidden,
                        w.saving);
  for (int64_t h = 0; h < C; ++h) {
    layer_norm(k, images, w.xc.data() + h * D, C * D, eps, w.head_input[h], w.head_rstd.data() + h * images);
    if (h == 0)
      gemm(k, images, w.head_input[h], head[h].forward(), StoreRows{w.logits.data(), stride, head[h].bias()});
    else
      gemm(k, images, w.head_input[h], head[h].forward(), AddToRows{w.logits.data(), stride, head[h].bias()});
  }
}

void FrozenVit::Body::block_forward(Workspace& w, int64_t images, size_t i, VitBlockState& s) const {
  blocks[i].forward(s, images, w.x.data(), w.x.data(), w.scratch.stream, w.scratch.hidden, w.saving);
}

void FrozenVit::Body::run_blocks(Workspace& w, int64_t images, size_t count,
                                 const AfterBlock& after_block) const {
  gemm(pixel_kernels(), images * tokens, w.patches, patch.forward(),
       StoreWithTable{w.x.data(), width, token_table.data(), tokens});
  for (size_t i = 0; i < count; ++i) {
    VitBlockState& s = w.saved[w.saving ? i : 0];
    block_forward(w, images, i, s);
    if (after_block) after_block(static_cast<int>(i), s);
  }
}

void FrozenVit::Body::forward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  run_blocks(w, images, blocks.size() - 1, nullptr);
  class_forward(w, images);
}

void FrozenVit::Body::backward_blocks(Workspace& w, int64_t images, const AtAttention& at_attention) const {
  const KernelSet& k = *kernels;
  const int64_t C = class_tokens, Rc = images * C, D = width;
  float *rows = w.scratch.rows.data(), *dxc = w.scratch.of(C).dx.data();
  for (int64_t b = 0; b < images; ++b)
    for (int64_t c = 0; c < classes; ++c) w.dlogits_operand.set(b, c, w.dlogits[b * classes + c]);
  std::memset(dxc, 0, sizeof(float) * Rc * D);
  for (int64_t h = 0; h < C; ++h) {
    gemm(k, images, w.dlogits_operand, head[h].backward(k), StoreRows{rows, D});
    layer_norm_backward(
        k, images, {rows, D, &w.head_input[h], w.head_rstd.data() + h * images, dxc + h * D, C * D, nullptr});
  }
  operand_from_rows(k, Rc, dxc, D, w.scratch.stream);
  for (size_t i = blocks.size(); i-- > 0;) {
    const bool last = i + 1 == blocks.size();
    VitBlock::Gradient gradient{.dout = last ? dxc : w.x.data(), .dx = w.x.data(), .to_operand = true};
    if (at_attention)
      gradient.at_attention = [&](const VitBlockState& s, const Heads& dout) {
        at_attention(s, dout);
        return i > 0;
      };
    blocks[i].backward(last ? w.last : w.saved[i], images, w.scratch, gradient);
  }
}

void FrozenVit::Body::backward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  backward_blocks(w, images, nullptr);
  gemm(*kernels, images * tokens, w.scratch.stream, patch_back,
       StoreRows{w.dpatches, rounded_to_panel(geometry.columns())});
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
  TapCollector(const Body& net, int64_t images, const std::vector<BlockTap>& taps) : taps_(taps) {
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
        for (int64_t b = 0; b < n; ++b) class_attention(s, b, to + b * count);
      else
        std::memcpy(to, w.x.data(), sizeof(float) * n * count);
    }
  }

  std::vector<Tensor> found;  // one per tap
  size_t blocks = 0;          // that have to run

 private:
  const std::vector<BlockTap>& taps_;
};

FrozenVit::Relevance FrozenVit::relevance(const Tensor& pixels, const Tensor& classes,
                                          const std::vector<BlockTap>& taps) {
  check_pixels(pixels);
  check_shape(classes, {pixels.size(0)}, "classes");
  auto& net = static_cast<Body&>(body());
  if (net.classes == 0) throw input_error("relevance: this network is an encoder without a head");
  Body::TapCollector collector(net, pixels.size(0), taps);
  const int64_t T = net.tokens;
  const size_t last = net.blocks.size() - 1;
  const Tensor wanted =
      torch::one_hot(classes.to(torch::kCPU, torch::kInt64), net.classes).to(torch::kFloat32);  // (B, C)
  Tensor out = torch::zeros({pixels.size(0), T});
  out.select(1, 0).fill_(1);
  net.for_chunks(pixels, true, [&](FrozenBody::Taken& workspace, int64_t first, int64_t n) {
    auto& w = static_cast<Body::Workspace&>(*workspace);
    net.run_blocks(w, n, last,
                   [&](int block, const VitBlockState& s) { collector.take(block, s, w, first, n); });
    net.class_forward(w, n);
    if (collector.blocks > last) {
      if (w.spare.q.tokens() == 0) w.spare = w.block_state(net, T);
      net.block_forward(w, n, last, w.spare);
      collector.take(static_cast<int>(last), w.spare, w, first, n);
    }
    std::copy_n(wanted.data_ptr<float>() + first * net.classes, n * net.classes, w.dlogits.data());
    net.backward_blocks(w, n, [&](const VitBlockState& s, const Heads& dout) {
      for (int64_t b = 0; b < n; ++b)
        add_relevance(net.pixel_kernels(), s, dout, b, out.data_ptr<float>() + (first + b) * T);
    });
  });
  return {out, collector.found};
}

std::vector<Tensor> FrozenVit::tapped(const Tensor& pixels, const std::vector<BlockTap>& taps) {
  check_pixels(pixels);
  auto& net = static_cast<Body&>(body());
  Body::TapCollector collector(net, pixels.size(0), taps);
  net.for_chunks(pixels, false, [&](FrozenBody::Taken& workspace, int64_t first, int64_t n) {
    auto& w = static_cast<Body::Workspace&>(*workspace);
    net.run_blocks(w, n, collector.blocks,
                   [&](int block, const VitBlockState& s) { collector.take(block, s, w, first, n); });
  });
  return collector.found;
}

}  // namespace aha
