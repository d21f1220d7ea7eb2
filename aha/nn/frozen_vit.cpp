#include "aha/nn/frozen_vit.h"

#include <numeric>

#include "aha/base/error.h"
#include "aha/kernels/attention/attention.h"
#include "aha/kernels/elementwise/elementwise.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/rope/rope.h"
#include "aha/nn/frozen_body.h"
#include "aha/nn/row_products.h"

namespace aha {
namespace {

struct Layer {
  Product qkv;     // (3D, D), q scaled; empty in a class-only last block
  Product q, kv;   // the last block of a classifier: queries of the class tokens alone
  Product proj, fc1, fc2;
};

// What the way back needs of one block.
struct Saved {
  Activations xhat1, xhat2;
  Slopes gelu_derivative;
  Heads q, k, v;
  AlignedBuffer<float> rstd1, rstd2, log_sum_exp;
};

}  // namespace

struct FrozenVit::Body : FrozenBody {
  struct Workspace;
  class Looks;

  Body(const FrozenVitWeights& w, const KernelSet& chosen);

  int64_t width, heads, head_width, hidden, class_tokens, tokens;
  float eps;
  Product patch;
  PackedWeights patch_back;          // in the form of the other products
  std::vector<Product> head;         // one a class token, the final norm folded in, divided by their number
  AlignedBuffer<float> token_table;  // (T, D): prefix tokens, then position + patch bias
  AlignedBuffer<float> rope_cos, rope_sin;
  std::vector<Layer> layers;

  std::unique_ptr<FrozenWorkspace> make_workspace(int64_t images, bool save) const override;
  void check_way_back() const override;
  void forward(FrozenWorkspace& w, int64_t images) const override;
  void backward(FrozenWorkspace& w, int64_t images) const override;
  int64_t packed_bytes() const override;

  // The first `blocks` blocks on all tokens.
  using AfterBlock = std::function<void(int block, const Saved& s)>;
  void run_blocks(Workspace& w, int64_t images, size_t blocks, const AfterBlock& after_block) const;
  void block_forward(Workspace& w, int64_t images, const Layer& layer, Saved& s) const;
  void class_forward(Workspace& w, int64_t images) const;  // the last block and the head, class tokens alone

  // Who only wants to see the gradient that reaches each attention, last block first, ends there.
  using AtAttention = std::function<void(const Saved& s, const Heads& dout)>;
  void way_back(Workspace& w, int64_t images, const AtAttention& at_attention) const;

 private:
  void last_block_backward(Workspace& w, int64_t images, const AtAttention& at_attention) const;
};

struct FrozenVit::Body::Workspace : FrozenWorkspace {
  Workspace(const Body& net, int64_t images, bool save);

  std::vector<Saved> saved;             // one a block on the way to a gradient, else one for all
  Saved last;                           // of the last block, class tokens alone
  Saved spare;                          // of the last block, all tokens, for who wants to see them on the way to a gradient
  AlignedBuffer<float> x, rows;         // (R, D): residual stream, on the way back its gradient; a product's rows, the last of which are dpatches
  AlignedBuffer<float> xc, dxc;         // the same of the class tokens alone, (B * class tokens, D)
  AlignedBuffer<float> last_rstd, head_rstd;
  Activations last_xhat;                // last block: norm1 of the class tokens
  Activations narrow;                   // (R, D): what the attention gives; on the way back the stream's gradient
  Activations hidden;                   // (R, F): of the MLP; on the way back its gradient
  Activations dqkv, dq_last, dkv_last, dlogits_operand;
  std::vector<Activations> head_input;  // one a class token, (B, D)
  Heads dout, dout_last;

  // Of a block whose `queries` first tokens ask.
  Saved block_state(const Body& net, int64_t queries);

 private:
  Heads cut(Format format, int64_t images, int64_t heads, int64_t tokens, int64_t width) {
    bytes += images * heads * rounded_to_strip(tokens) * width * (format == Format::kBf16 ? 2 : 4);
    return Heads(format, images, heads, tokens, width);
  }
};

FrozenVit::Body::Workspace::Workspace(const Body& net, int64_t images, bool save) : FrozenWorkspace(images, save) {
  const Format format = net.kernels->format;
  const int64_t R = images * net.tokens, D = net.width, F = net.hidden, Rc = images * net.class_tokens;
  const size_t blocks = net.layers.size();
  for (size_t i = 0; i < (save ? blocks - 1 : 1); ++i) saved.push_back(block_state(net, net.tokens));
  x = floats(R * D);
  patches = operand(net.pixel_kernels().format, R, net.geometry.columns());
  narrow = operand(format, R, D);
  hidden = operand(format, R, F);
  if (net.class_tokens > 0) {
    last = block_state(net, net.class_tokens);
    xc = floats(Rc * D);
    last_xhat = operand(format, Rc, D);
    last_rstd = floats(Rc);
    head_rstd = floats(Rc);
    logits = floats(images * rounded_to_strip(net.classes));
    for (int64_t h = 0; h < net.class_tokens; ++h) head_input.push_back(operand(format, images, D));
  }
  if (save) {
    rows = floats(R * std::max(D, rounded_to_strip(net.geometry.columns())));
    dpatches = rows.data();
    dxc = floats(Rc * D);
    dlogits = floats(images * net.classes);
    dqkv = operand(format, R, 3 * D);
    dq_last = operand(format, Rc, D);
    dkv_last = operand(format, R, 2 * D);
    dlogits_operand = operand(format, images, net.classes);
    dout = cut(format, images, net.heads, net.tokens, net.head_width);
    dout_last = cut(format, images, net.heads, net.class_tokens, net.head_width);
  }
}

Saved FrozenVit::Body::Workspace::block_state(const Body& net, int64_t queries) {
  const Format format = net.kernels->format;
  const int64_t key_rows = capacity * net.tokens, query_rows = capacity * queries;
  Saved s;
  s.xhat1 = operand(format, key_rows, net.width);
  s.xhat2 = operand(format, query_rows, net.width);
  if (saving) s.gelu_derivative = slopes(format, query_rows, net.hidden);
  s.q = cut(format, capacity, net.heads, queries, net.head_width);
  s.k = cut(format, capacity, net.heads, net.tokens, net.head_width);
  s.v = cut(format, capacity, net.heads, net.tokens, net.head_width);
  s.rstd1 = floats(key_rows);
  s.rstd2 = floats(query_rows);
  s.log_sum_exp = floats(capacity * net.heads * queries);
  return s;
}

FrozenVit::Body::Body(const FrozenVitWeights& w, const KernelSet& chosen) : FrozenBody(chosen) {
  const Format format = kernels->format;
  width = w.patch_weight.size(0);
  heads = w.heads;
  head_width = width / heads;
  if (width % 32 != 0 || head_width % 32 != 0 || head_width * heads != width)
    throw input_error("the fast engine needs a width and a head width that are multiples of 32, found {} in {} heads", width, heads);
  hidden = w.blocks.at(0).fc1_weight.size(0);
  eps = static_cast<float>(w.eps);
  class_tokens = w.head_weight.empty() ? 0 : w.class_tokens;
  geometry.height = static_cast<int>(w.height);
  geometry.width = static_cast<int>(w.width);
  geometry.patch = static_cast<int>(w.patch);
  geometry.prefix_tokens = static_cast<int>(w.prefix.size(0));
  geometry.mean = w.mean;
  geometry.std = w.std;
  tokens = geometry.tokens();
  // About 1,600 rows a chunk keep the operand of a product in the second-level cache and amortise the weights' way from memory.
  images_a_chunk = std::clamp<int64_t>((1600 + tokens / 2) / tokens, 1, 64);

  patch = Product(pixel_kernels().format, w.patch_weight, Tensor());
  patch_back = PackedWeights::backward(format, floats_from(w.patch_weight).data(), patch.outputs, patch.inputs);
  token_table = AlignedBuffer<float>(tokens * width);
  std::ranges::copy(floats_from(w.prefix), token_table.data());
  Tensor table = doubles_from(w.patch_bias).unsqueeze(0).expand({geometry.patches(), width});
  if (w.positions.defined()) table = table + doubles_from(w.positions);
  std::ranges::copy(floats_from(table), token_table.data() + geometry.prefix_tokens * width);
  if (w.rope_cos.defined()) {
    rope_cos = AlignedBuffer<float>(w.rope_cos.numel());
    rope_sin = AlignedBuffer<float>(w.rope_sin.numel());
    std::ranges::copy(floats_from(w.rope_cos), rope_cos.data());
    std::ranges::copy(floats_from(w.rope_sin), rope_sin.data());
  }

  const double query_scale = 1 / std::sqrt(static_cast<double>(head_width));
  for (size_t i = 0; i < w.blocks.size(); ++i) {
    const auto& b = w.blocks[i];
    Layer layer;
    Folded qkv = fold_norm(b.qkv_weight, b.qkv_bias, b.norm1_weight, b.norm1_bias);
    qkv.weight.narrow(0, 0, width).mul_(query_scale);
    qkv.bias.narrow(0, 0, width).mul_(query_scale);
    layer.qkv = Product(format, qkv.weight, qkv.bias);
    if (class_tokens > 0 && i + 1 == w.blocks.size()) {
      layer.q = Product(format, qkv.weight.narrow(0, 0, width), qkv.bias.narrow(0, 0, width));
      layer.kv = Product(format, qkv.weight.narrow(0, width, 2 * width), qkv.bias.narrow(0, width, 2 * width));
    }
    const Folded proj = fold_scale(b.proj_weight, b.proj_bias, b.scale1);
    layer.proj = Product(format, proj.weight, proj.bias);
    const Folded fc1 = fold_norm(b.fc1_weight, b.fc1_bias, b.norm2_weight, b.norm2_bias);
    layer.fc1 = Product(format, fc1.weight, fc1.bias);
    const Folded fc2 = fold_scale(b.fc2_weight, b.fc2_bias, b.scale2);
    layer.fc2 = Product(format, fc2.weight, fc2.bias);
    layers.push_back(std::move(layer));
  }
  for (int64_t h = 0; h < class_tokens; ++h) {
    const Folded f = fold_norm(w.head_weight[h], w.head_bias[h], w.norm_weight, w.norm_bias);
    const double share = 1.0 / static_cast<double>(class_tokens);
    head.emplace_back(format, f.weight * share, f.bias * share);
    classes = f.weight.size(0);
  }
}

std::unique_ptr<FrozenWorkspace> FrozenVit::Body::make_workspace(int64_t images, bool save) const {
  return std::make_unique<Workspace>(*this, images, save);
}

void FrozenVit::Body::check_way_back() const {
  if (rope_cos.size() > 0) throw input_error("the fast engine has no way back through rotary positions");
}

void FrozenVit::Body::class_forward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  Saved& s = w.last;
  const Layer& layer = layers.back();
  const int64_t R = images * tokens, C = class_tokens, Rc = images * C, D = width;
  layer_norm(k, R, w.x.data(), D, eps, s.xhat1, s.rstd1.data());
  gemm(k, R, s.xhat1, layer.kv.forward, StoreHeads{{&s.k, &s.v, nullptr}, layer.kv.bias.data()});
  if (rope_cos.size() > 0) rotate_heads(k, images, geometry.prefix_tokens, rope_cos.data(), rope_sin.data(), s.k);
  for (int64_t b = 0; b < images; ++b) std::memcpy(w.xc.data() + b * C * D, w.x.data() + b * tokens * D, sizeof(float) * C * D);
  layer_norm(k, Rc, w.xc.data(), D, eps, w.last_xhat, w.last_rstd.data());
  gemm(k, Rc, w.last_xhat, layer.q.forward, StoreHeads{{&s.q, nullptr, nullptr}, layer.q.bias.data()});
  attention_forward(k, {&s.q, &s.k, &s.v, images}, w.narrow, s.log_sum_exp.data());
  gemm(k, Rc, w.narrow, layer.proj.forward, AddToRows{w.xc.data(), D, layer.proj.bias.data()});
  layer_norm(k, Rc, w.xc.data(), D, eps, s.xhat2, s.rstd2.data());
  gemm(k, Rc, s.xhat2, layer.fc1.forward, GeluToActivations{&w.hidden, layer.fc1.bias.data(), w.saving ? &s.gelu_derivative : nullptr});
  gemm(k, Rc, w.hidden, layer.fc2.forward, AddToRows{w.xc.data(), D, layer.fc2.bias.data()});
  const int64_t stride = rounded_to_strip(classes);
  for (int64_t h = 0; h < C; ++h) {
    layer_norm(k, images, w.xc.data() + h * D, C * D, eps, w.head_input[h], w.head_rstd.data() + h * images);
    if (h == 0)
      gemm(k, images, w.head_input[h], head[h].forward, StoreRows{w.logits.data(), stride, head[h].bias.data()});
    else
      gemm(k, images, w.head_input[h], head[h].forward, AddToRows{w.logits.data(), stride, head[h].bias.data()});
  }
}

void FrozenVit::Body::block_forward(Workspace& w, int64_t images, const Layer& layer, Saved& s) const {
  const KernelSet& k = *kernels;
  const int64_t R = images * tokens, D = width;
  layer_norm(k, R, w.x.data(), D, eps, s.xhat1, s.rstd1.data());
  gemm(k, R, s.xhat1, layer.qkv.forward, StoreHeads{{&s.q, &s.k, &s.v}, layer.qkv.bias.data()});
  if (rope_cos.size() > 0)
    for (Heads* heads : {&s.q, &s.k}) rotate_heads(k, images, geometry.prefix_tokens, rope_cos.data(), rope_sin.data(), *heads);
  attention_forward(k, {&s.q, &s.k, &s.v, images}, w.narrow, s.log_sum_exp.data());
  gemm(k, R, w.narrow, layer.proj.forward, AddToRows{w.x.data(), D, layer.proj.bias.data()});
  layer_norm(k, R, w.x.data(), D, eps, s.xhat2, s.rstd2.data());
  gemm(k, R, s.xhat2, layer.fc1.forward, GeluToActivations{&w.hidden, layer.fc1.bias.data(), w.saving ? &s.gelu_derivative : nullptr});
  gemm(k, R, w.hidden, layer.fc2.forward, AddToRows{w.x.data(), D, layer.fc2.bias.data()});
}

void FrozenVit::Body::run_blocks(Workspace& w, int64_t images, size_t blocks, const AfterBlock& after_block) const {
  gemm(pixel_kernels(), images * tokens, w.patches, patch.forward, StoreWithTable{w.x.data(), width, token_table.data(), tokens});
  for (size_t i = 0; i < blocks; ++i) {
    Saved& s = w.saved[w.saving ? i : 0];
    block_forward(w, images, layers[i], s);
    if (after_block) after_block(static_cast<int>(i), s);
  }
}

void FrozenVit::Body::forward(FrozenWorkspace& workspace, int64_t images) const {
  auto& w = static_cast<Workspace&>(workspace);
  run_blocks(w, images, layers.size() - 1, nullptr);
  class_forward(w, images);
}

void FrozenVit::Body::last_block_backward(Workspace& w, int64_t images, const AtAttention& at_attention) const {
  const KernelSet& k = *kernels;
  const Layer& layer = layers.back();
  const Saved& s = w.last;
  const int64_t R = images * tokens, C = class_tokens, Rc = images * C, D = width;
  gemm(k, Rc, w.narrow, layer.fc2.backward(k), ScaleToActivations{&w.hidden, &s.gelu_derivative});
  gemm(k, Rc, w.hidden, layer.fc1.backward(k), StoreRows{w.rows.data(), D});
  layer_norm_backward(k, Rc, {w.rows.data(), D, &s.xhat2, s.rstd2.data(), w.dxc.data(), D, &w.narrow});
  gemm(k, Rc, w.narrow, layer.proj.backward(k), StoreHeads{{&w.dout_last, nullptr, nullptr}});
  if (at_attention) at_attention(s, w.dout_last);
  attention_backward(k, {&s.q, &s.k, &s.v, images},
                     {&w.dout_last, s.log_sum_exp.data(), &w.dq_last, 0, &w.dkv_last, 0, &w.dkv_last, D});
  gemm(k, Rc, w.dq_last, layer.q.backward(k), StoreRows{w.rows.data(), D});
  layer_norm_backward(k, Rc, {w.rows.data(), D, &w.last_xhat, w.last_rstd.data(), w.dxc.data(), D, nullptr});
  // What came to the class tokens goes to their places; keys and values add their part, and the sum becomes the next operand.
  std::memset(w.x.data(), 0, sizeof(float) * R * D);
  for (int64_t b = 0; b < images; ++b) std::memcpy(w.x.data() + b * tokens * D, w.dxc.data() + b * C * D, sizeof(float) * C * D);
  gemm(k, R, w.dkv_last, layer.kv.backward(k), StoreRows{w.rows.data(), D});
  layer_norm_backward(k, R, {w.rows.data(), D, &s.xhat1, s.rstd1.data(), w.x.data(), D, &w.narrow});
}

void FrozenVit::Body::way_back(Workspace& w, int64_t images, const AtAttention& at_attention) const {
  const KernelSet& k = *kernels;
  const int64_t R = images * tokens, C = class_tokens, Rc = images * C, D = width;
  for (int64_t b = 0; b < images; ++b)
    for (int64_t c = 0; c < classes; ++c) w.dlogits_operand.set(b, c, w.dlogits[b * classes + c]);
  std::memset(w.dxc.data(), 0, sizeof(float) * Rc * D);
  for (int64_t h = 0; h < C; ++h) {
    gemm(k, images, w.dlogits_operand, head[h].backward(k), StoreRows{w.rows.data(), D});
    layer_norm_backward(k, images, {w.rows.data(), D, &w.head_input[h], w.head_rstd.data() + h * images, w.dxc.data() + h * D, C * D, nullptr});
  }
  for (int64_t r = 0; r < Rc; ++r)
    for (int64_t d = 0; d < D; ++d) w.narrow.set(r, d, w.dxc[r * D + d]);
  last_block_backward(w, images, at_attention);
  for (size_t i = layers.size() - 1; i-- > 0;) {
    const Layer& layer = layers[i];
    const Saved& s = w.saved[i];
    gemm(k, R, w.narrow, layer.fc2.backward(k), ScaleToActivations{&w.hidden, &s.gelu_derivative});
    gemm(k, R, w.hidden, layer.fc1.backward(k), StoreRows{w.rows.data(), D});
    layer_norm_backward(k, R, {w.rows.data(), D, &s.xhat2, s.rstd2.data(), w.x.data(), D, &w.narrow});
    gemm(k, R, w.narrow, layer.proj.backward(k), StoreHeads{{&w.dout, nullptr, nullptr}});
    if (at_attention) at_attention(s, w.dout);
    if (at_attention && i == 0) return;
    attention_backward(k, {&s.q, &s.k, &s.v, images},
                       {&w.dout, s.log_sum_exp.data(), &w.dqkv, 0, &w.dqkv, D, &w.dqkv, 2 * D});
    gemm(k, R, w.dqkv, layer.qkv.backward(k), StoreRows{w.rows.data(), D});
    layer_norm_backward(k, R, {w.rows.data(), D, &s.xhat1, s.rstd1.data(), w.x.data(), D, &w.narrow});
  }
  gemm(k, R, w.narrow, patch_back, StoreRows{w.dpatches, rounded_to_strip(geometry.columns())});
}

void FrozenVit::Body::backward(FrozenWorkspace& w, int64_t images) const {
  way_back(static_cast<Workspace&>(w), images, nullptr);
}

int64_t FrozenVit::Body::packed_bytes() const {
  int64_t bytes = patch.bytes() + patch_back.bytes();
  for (const auto& h : head) bytes += h.bytes();
  for (const auto& l : layers)
    for (const Product* p : {&l.qkv, &l.q, &l.kv, &l.proj, &l.fc1, &l.fc2}) bytes += p->bytes();
  return bytes;
}

FrozenVit::FrozenVit(const FrozenVitWeights& weights, Precision precision) : FrozenVit(weights, best_kernel_set(precision)) {}

FrozenVit::FrozenVit(const FrozenVitWeights& weights, const KernelSet& kernels) : FrozenNetwork(std::make_shared<Body>(weights, kernels)) {}

// One row of a head as floats; `room` is used where they are kept in another form.
static const float* row_from(const Heads& heads, int64_t image, int64_t head, int64_t token, std::vector<float>& room) {
  if (heads.format() == Format::kF32) return heads.f32() + heads.offset(image, head) + token * heads.width();
  const Bf16* high = heads.bf16() + heads.offset(image, head) + token * heads.width();
  for (int64_t c = 0; c < heads.width(); ++c) room[c] = float_from_bf16(high[c]);
  if (heads.format() == Format::kBf16Pair)
    for (int64_t c = 0; c < heads.width(); ++c) room[c] += float_from_bf16(high[heads.plane() + c]);
  return room.data();
}

// (heads, T): softmax of token 0's query with all keys, from the logarithm of its sum.
static void class_attention(const Saved& s, int64_t image, float* out) {
  const int64_t H = s.q.heads(), T = s.k.tokens(), d = s.k.width();
  std::vector<float> query_room(d), key_room(d);
  for (int64_t h = 0; h < H; ++h) {
    const float* query = row_from(s.q, image, h, 0, query_room);
    const float log_sum = s.log_sum_exp.data()[(image * H + h) * T];
    for (int64_t t = 0; t < T; ++t) {
      const float* key = row_from(s.k, image, h, t, key_room);
      out[h * T + t] = std::exp(std::inner_product(query, query + d, key, 0.f) - log_sum);
    }
  }
}

// (tokens, width), contiguous.
static Tensor matrix_from(const Heads& heads, int64_t image, int64_t head) {
  Tensor out = torch::empty({heads.tokens(), heads.width()});
  std::vector<float> room(heads.width());
  for (int64_t t = 0; t < heads.tokens(); ++t)
    std::copy_n(row_from(heads, image, head, t, room), heads.width(), out.data_ptr<float>() + t * heads.width());
  return out;
}

// row += row C of one block: `row` (T) has only the class tokens so far where the queries are these alone.
static void add_relevance(const KernelSet& kernels, const Saved& s, const Heads& dout, int64_t image, float* row) {
  const int64_t H = s.q.heads(), Q = s.q.tokens(), T = s.k.tokens();
  std::vector<float> products(Q * T, 0.f);  // sum over heads of P * dP
  for (int64_t h = 0; h < H; ++h) {
    Tensor P = linear_by_rows(kernels, matrix_from(s.q, image, h), matrix_from(s.k, image, h)).contiguous();  // (Q, T)
    softmax_rows(kernels, Q, T, P.data_ptr<float>(), T, nullptr);
    const Tensor dP = linear_by_rows(kernels, matrix_from(dout, image, h), matrix_from(s.v, image, h)).contiguous();
    const float *p = P.data_ptr<float>(), *d = dP.data_ptr<float>();
    for (int64_t i = 0; i < Q * T; ++i) products[i] += p[i] * d[i];
  }
  std::vector<float> sum(row, row + T);
  for (int64_t q = 0; q < Q; ++q)
    for (int64_t t = 0; t < T; ++t) sum[t] += row[q] * std::max(0.f, products[q * T + t] / static_cast<float>(H));
  std::ranges::copy(sum, row);
}

// What is looked at, collected chunk by chunk.
class FrozenVit::Body::Looks {
 public:
  Looks(const Body& net, int64_t images, const std::vector<Look>& looks) : looks_(looks) {
    for (const Look& look : looks) {
      if (look.block < 0 || look.block >= static_cast<int>(net.layers.size()))
        throw input_error("a look into block {}: this network has blocks 0..{}", look.block, net.layers.size() - 1);
      found.push_back(look.class_attention ? torch::empty({images, net.heads, 1, net.tokens}) : torch::empty({images, net.tokens, net.width}));
      blocks = std::max<size_t>(blocks, look.block + 1);
    }
  }

  // After a block has run on the n images from `first` on.
  void take(int block, const Saved& s, const Workspace& w, int64_t first, int64_t n) {
    for (size_t i = 0; i < looks_.size(); ++i) {
      if (looks_[i].block != block) continue;
      const int64_t count = found[i][0].numel();
      float* to = found[i].data_ptr<float>() + first * count;
      if (looks_[i].class_attention)
        for (int64_t b = 0; b < n; ++b) class_attention(s, b, to + b * count);
      else
        std::memcpy(to, w.x.data(), sizeof(float) * n * count);
    }
  }

  std::vector<Tensor> found;  // one a look
  size_t blocks = 0;          // that have to run

 private:
  const std::vector<Look>& looks_;
};

FrozenVit::Relevance FrozenVit::relevance(const Tensor& pixels, const Tensor& classes, const std::vector<Look>& looks) {
  check_pixels(pixels);
  check_shape(classes, {pixels.size(0)}, "classes");
  auto& net = static_cast<Body&>(body());
  if (net.classes == 0) throw input_error("relevance: this network is an encoder without a head");
  net.check_way_back();
  Body::Looks seen(net, pixels.size(0), looks);
  const int64_t T = net.tokens;
  const size_t last = net.layers.size() - 1;
  const Tensor wanted = torch::one_hot(classes.to(torch::kCPU, torch::kInt64), net.classes).to(torch::kFloat32);  // (B, C)
  Tensor out = torch::zeros({pixels.size(0), T});
  out.select(1, 0).fill_(1);
  net.for_chunks(pixels, true, [&](std::unique_ptr<FrozenWorkspace>& workspace, int64_t first, int64_t n) {
    auto& w = static_cast<Body::Workspace&>(*workspace);
    net.run_blocks(w, n, last, [&](int block, const Saved& s) { seen.take(block, s, w, first, n); });
    net.class_forward(w, n);
    if (seen.blocks > last) {
      if (w.spare.q.tokens() == 0) w.spare = w.block_state(net, T);
      net.block_forward(w, n, net.layers[last], w.spare);
      seen.take(static_cast<int>(last), w.spare, w, first, n);
    }
    std::copy_n(wanted.data_ptr<float>() + first * net.classes, n * net.classes, w.dlogits.data());
    net.way_back(w, n, [&](const Saved& s, const Heads& dout) {
      for (int64_t b = 0; b < n; ++b) add_relevance(net.pixel_kernels(), s, dout, b, out.data_ptr<float>() + (first + b) * T);
    });
  });
  return {out, seen.found};
}

std::vector<Tensor> FrozenVit::seen(const Tensor& pixels, const std::vector<Look>& looks) {
  check_pixels(pixels);
  auto& net = static_cast<Body&>(body());
  Body::Looks seen(net, pixels.size(0), looks);
  net.for_chunks(pixels, false, [&](std::unique_ptr<FrozenWorkspace>& workspace, int64_t first, int64_t n) {
    auto& w = static_cast<Body::Workspace&>(*workspace);
    net.run_blocks(w, n, seen.blocks, [&](int block, const Saved& s) { seen.take(block, s, w, first, n); });
  });
  return seen.found;
}

}  // namespace aha
