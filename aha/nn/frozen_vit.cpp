#include "aha/nn/frozen_vit.h"

#include <mutex>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/attention.h"
#include "aha/kernels/compose.h"
#include "aha/kernels/elementwise.h"
#include "aha/kernels/gemm.h"
#include "aha/kernels/layer_norm.h"
#include "aha/kernels/rope.h"

namespace aha {
namespace {

std::vector<float> floats(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

Tensor doubles(const Tensor& tensor) { return tensor.detach().to(torch::kCPU, torch::kFloat64); }

// y = x W^T + b with its pack for the way forward and, once wanted, for the way back.
struct Product {
  int64_t outputs = 0, inputs = 0;
  std::vector<float> weight;  // kept until the pack for the way back is made
  PackedWeights forward, backward;
  AlignedBuffer<float> bias;

  Product() = default;
  Product(Format format, const Tensor& w, const Tensor& b)
      : outputs(w.size(0)), inputs(w.size(1)), weight(floats(w)), bias(rounded_to_strip(w.size(0))) {
    forward = PackedWeights::forward(format, weight.data(), outputs, inputs);
    if (b.defined()) std::ranges::copy(floats(b), bias.data());
  }
  void pack_backward(Format format) {
    if (weight.empty()) return;
    backward = PackedWeights::backward(format, weight.data(), outputs, inputs);
    std::vector<float>().swap(weight);
  }
};

struct Folded {
  Tensor weight, bias;  // float64
};

// LayerNorm's gamma and beta go into the product that reads it: W (gamma xhat + beta) + b.
Folded fold_norm(const Tensor& weight, const Tensor& bias, const Tensor& gamma, const Tensor& beta) {
  const Tensor w = doubles(weight);
  Tensor b = bias.defined() ? doubles(bias) : torch::zeros({w.size(0)}, torch::kFloat64);
  return {w * doubles(gamma), b + w.matmul(doubles(beta))};
}

// LayerScale goes into the rows of the product before it.
Folded fold_scale(const Tensor& weight, const Tensor& bias, const Tensor& scale) {
  Folded out{doubles(weight), bias.defined() ? doubles(bias) : torch::zeros({weight.size(0)}, torch::kFloat64)};
  if (scale.defined()) out = {out.weight * doubles(scale).unsqueeze(1), out.bias * doubles(scale)};
  return out;
}

struct Layer {
  Product qkv;     // (3D, D), q scaled; empty in a class-only last block
  Product q, kv;   // the last block of a classifier: queries of the class tokens alone
  Product proj, fc1, fc2;
};

// What the way back needs of one block.
struct Saved {
  Activations xhat1, xhat2, gelu_derivative;
  Heads q, k, v;
  AlignedBuffer<float> rstd1, rstd2, log_sum_exp;
};

}  // namespace

struct FrozenVit::Impl {
  explicit Impl(const FrozenVitWeights& w, Precision precision);

  const KernelSet* kernels;
  PatchGeometry geometry;
  int64_t width, heads, head_width, hidden, class_tokens, classes = 0, tokens;
  float eps;
  Product patch;
  std::vector<Product> head;             // one a class token, the final norm folded in, divided by their number
  AlignedBuffer<float> token_table;      // (T, D): prefix tokens, then position + patch bias
  AlignedBuffer<float> rope_cos, rope_sin;
  std::vector<Layer> layers;
  bool can_go_back = false;
  std::mutex guard;                      // of can_go_back and the pool

  struct Workspace;
  std::vector<std::unique_ptr<Workspace>> pool;
  int64_t largest_workspace = 0;

  void prepare_backward();
  std::unique_ptr<Workspace> take(int64_t images, bool save);
  void give_back(std::unique_ptr<Workspace> workspace);
  int64_t chunk_size(int64_t images) const;

  // Rows of w.patches are filled; runs all blocks. With `logits`, the head too (w.logits).
  void forward(Workspace& w, int64_t images, bool save, const std::function<void(int, const float*)>& after_block, bool logits) const;
  // From w.dlogits to w.dpatches.
  void backward(Workspace& w, int64_t images) const;
  void last_block_forward(Workspace& w, int64_t images, Saved& s) const;
  void last_block_backward(Workspace& w, int64_t images) const;

  int64_t packed_bytes() const;
};

struct FrozenVit::Impl::Workspace {
  Workspace(const Impl& net, int64_t images, bool save);

  int64_t capacity;
  bool saving;
  std::vector<Saved> saved;             // one a block on the way to a gradient, else one for all
  Saved last;                           // of the last block, class tokens alone
  AlignedBuffer<float> x, dx, rows;     // (R, D): residual stream, its gradient, a product's rows
  AlignedBuffer<float> xc, dxc;         // the same of the class tokens alone, (B * class tokens, D)
  AlignedBuffer<float> last_rstd, head_rstd, logits, dlogits, dpatches;
  Activations last_xhat;                // last block: norm1 of the class tokens
  Activations patches, context, hidden;
  Activations dx_operand, dhidden, dqkv, dq_last, dkv_last, dlogits_operand;
  std::vector<Activations> head_input;  // one a class token, (B, D)
  Heads dout, dout_last;
  int64_t bytes = 0;

 private:
  AlignedBuffer<float> floats(int64_t n) {
    bytes += 4 * n;
    return AlignedBuffer<float>(n);
  }
  Activations operand(Format format, int64_t rows, int64_t columns) {
    bytes += rounded_to_strip(rows) * rounded_to_strip(columns) * (format == Format::kBf16 ? 2 : 4);
    return Activations(format, rows, columns);
  }
  Heads cut(Format format, int64_t images, int64_t heads, int64_t tokens, int64_t width) {
    bytes += images * heads * rounded_to_strip(tokens) * width * (format == Format::kBf16 ? 2 : 4);
    return Heads(format, images, heads, tokens, width);
  }
};

FrozenVit::Impl::Workspace::Workspace(const Impl& net, int64_t images, bool save) : capacity(images), saving(save) {
  const Format format = net.kernels->format;
  const int64_t R = images * net.tokens, D = net.width, F = net.hidden, Rc = images * net.class_tokens;
  const auto block_state = [&](int64_t queries, int64_t key_rows) {
    Saved s;
    const int64_t query_rows = images * queries;
    s.xhat1 = operand(format, key_rows, D);
    s.xhat2 = operand(format, query_rows, D);
    if (save) s.gelu_derivative = operand(format, query_rows, F);
    s.q = cut(format, images, net.heads, queries, net.head_width);
    s.k = cut(format, images, net.heads, net.tokens, net.head_width);
    s.v = cut(format, images, net.heads, net.tokens, net.head_width);
    s.rstd1 = floats(key_rows);
    s.rstd2 = floats(query_rows);
    s.log_sum_exp = floats(images * net.heads * queries);
    return s;
  };
  const size_t blocks = net.layers.size();
  for (size_t i = 0; i < (save ? blocks - 1 : 1); ++i) saved.push_back(block_state(net.tokens, R));
  x = floats(R * D);
  patches = operand(format, R, net.geometry.columns());
  context = operand(format, R, D);
  hidden = operand(format, R, F);
  if (net.class_tokens > 0) {
    last = block_state(net.class_tokens, R);
    xc = floats(Rc * D);
    last_xhat = operand(format, Rc, D);
    last_rstd = floats(Rc);
    head_rstd = floats(Rc);
    logits = floats(images * rounded_to_strip(net.classes));
    for (int64_t h = 0; h < net.class_tokens; ++h) head_input.push_back(operand(format, images, D));
  }
  if (save) {
    dx = floats(R * D);
    rows = floats(R * D);
    dxc = floats(Rc * D);
    dlogits = floats(images * net.classes);
    dpatches = floats(R * rounded_to_strip(net.geometry.columns()));
    dx_operand = operand(format, R, D);
    dhidden = operand(format, R, F);
    dqkv = operand(format, R, 3 * D);
    dq_last = operand(format, Rc, D);
    dkv_last = operand(format, R, 2 * D);
    dlogits_operand = operand(format, images, net.classes);
    dout = cut(format, images, net.heads, net.tokens, net.head_width);
    dout_last = cut(format, images, net.heads, net.class_tokens, net.head_width);
  }
}

FrozenVit::Impl::Impl(const FrozenVitWeights& w, Precision precision) : kernels(&best_kernel_set(precision)) {
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

  patch = Product(format, w.patch_weight, Tensor());
  token_table = AlignedBuffer<float>(tokens * width);
  std::ranges::copy(floats(w.prefix), token_table.data());
  Tensor table = doubles(w.patch_bias).unsqueeze(0).expand({geometry.patches(), width});
  if (w.positions.defined()) table = table + doubles(w.positions);
  std::ranges::copy(floats(table), token_table.data() + geometry.prefix_tokens * width);
  if (w.rope_cos.defined()) {
    rope_cos = AlignedBuffer<float>(w.rope_cos.numel());
    rope_sin = AlignedBuffer<float>(w.rope_sin.numel());
    std::ranges::copy(floats(w.rope_cos), rope_cos.data());
    std::ranges::copy(floats(w.rope_sin), rope_sin.data());
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

void FrozenVit::Impl::prepare_backward() {
  const std::lock_guard lock(guard);
  if (can_go_back) return;
  if (rope_cos.size() > 0) throw input_error("the fast engine has no way back through rotary positions");
  patch.pack_backward(kernels->format);
  for (auto& h : head) h.pack_backward(kernels->format);
  for (auto& layer : layers)
    for (Product* product : {&layer.qkv, &layer.q, &layer.kv, &layer.proj, &layer.fc1, &layer.fc2})
      product->pack_backward(kernels->format);
  can_go_back = true;
}

// About 1,600 rows a chunk keep the operand of a product in the second-level cache and amortise the weights' way from memory.
int64_t FrozenVit::Impl::chunk_size(int64_t images) const {
  const int64_t most = std::clamp<int64_t>((1600 + tokens / 2) / tokens, 1, 64);
  const int64_t a_thread = (images + threads() - 1) / threads();
  return std::clamp<int64_t>(a_thread, 1, most);
}

std::unique_ptr<FrozenVit::Impl::Workspace> FrozenVit::Impl::take(int64_t images, bool save) {
  {
    const std::lock_guard lock(guard);
    for (auto& held : pool)
      if (held && held->capacity >= images && held->saving == save) {
        auto out = std::move(held);
        std::erase(pool, nullptr);
        return out;
      }
    // A workspace that is too small will not be asked for again soon: make room.
    std::erase_if(pool, [&](const auto& held) { return held->capacity < images && held->saving == save; });
  }
  auto made = std::make_unique<Workspace>(*this, images, save);
  const std::lock_guard lock(guard);
  largest_workspace = std::max(largest_workspace, made->bytes);
  return made;
}

void FrozenVit::Impl::give_back(std::unique_ptr<Workspace> workspace) {
  const std::lock_guard lock(guard);
  pool.push_back(std::move(workspace));
}

void FrozenVit::Impl::last_block_forward(Workspace& w, int64_t images, Saved& s) const {
  const KernelSet& k = *kernels;
  const Layer& layer = layers.back();
  const int64_t R = images * tokens, C = class_tokens, Rc = images * C, D = width;
  layer_norm(k, R, w.x.data(), D, eps, s.xhat1, s.rstd1.data());
  gemm(k, R, s.xhat1, layer.kv.forward, StoreHeads{{&s.k, &s.v, nullptr}, layer.kv.bias.data()});
  if (rope_cos.size() > 0) rotate_heads(k, images, geometry.prefix_tokens, rope_cos.data(), rope_sin.data(), s.k);
  for (int64_t b = 0; b < images; ++b) std::memcpy(w.xc.data() + b * C * D, w.x.data() + b * tokens * D, sizeof(float) * C * D);
  layer_norm(k, Rc, w.xc.data(), D, eps, w.last_xhat, w.last_rstd.data());
  gemm(k, Rc, w.last_xhat, layer.q.forward, StoreHeads{{&s.q, nullptr, nullptr}, layer.q.bias.data()});
  attention_forward(k, {&s.q, &s.k, &s.v, images}, w.context, s.log_sum_exp.data());
  gemm(k, Rc, w.context, layer.proj.forward, AddToRows{w.xc.data(), D, layer.proj.bias.data()});
  layer_norm(k, Rc, w.xc.data(), D, eps, s.xhat2, s.rstd2.data());
  gemm(k, Rc, s.xhat2, layer.fc1.forward, GeluToActivations{&w.hidden, layer.fc1.bias.data(), w.saving ? &s.gelu_derivative : nullptr});
  gemm(k, Rc, w.hidden, layer.fc2.forward, AddToRows{w.xc.data(), D, layer.fc2.bias.data()});
}

void FrozenVit::Impl::forward(Workspace& w, int64_t images, bool save, const std::function<void(int, const float*)>& after_block,
                              bool logits) const {
  const KernelSet& k = *kernels;
  const int64_t R = images * tokens, D = width;
  gemm(k, R, w.patches, patch.forward, StoreWithTable{w.x.data(), D, token_table.data(), tokens});
  const size_t whole_blocks = logits ? layers.size() - 1 : layers.size();
  for (size_t i = 0; i < whole_blocks; ++i) {
    const Layer& layer = layers[i];
    Saved& s = w.saved[save ? i : 0];
    layer_norm(k, R, w.x.data(), D, eps, s.xhat1, s.rstd1.data());
    gemm(k, R, s.xhat1, layer.qkv.forward, StoreHeads{{&s.q, &s.k, &s.v}, layer.qkv.bias.data()});
    if (rope_cos.size() > 0)
      for (Heads* heads : {&s.q, &s.k}) rotate_heads(k, images, geometry.prefix_tokens, rope_cos.data(), rope_sin.data(), *heads);
    attention_forward(k, {&s.q, &s.k, &s.v, images}, w.context, s.log_sum_exp.data());
    gemm(k, R, w.context, layer.proj.forward, AddToRows{w.x.data(), D, layer.proj.bias.data()});
    layer_norm(k, R, w.x.data(), D, eps, s.xhat2, s.rstd2.data());
    gemm(k, R, s.xhat2, layer.fc1.forward, GeluToActivations{&w.hidden, layer.fc1.bias.data(), save ? &s.gelu_derivative : nullptr});
    gemm(k, R, w.hidden, layer.fc2.forward, AddToRows{w.x.data(), D, layer.fc2.bias.data()});
    if (after_block) after_block(static_cast<int>(i), w.x.data());
  }
  if (!logits) return;
  last_block_forward(w, images, w.last);
  const int64_t C = class_tokens, stride = rounded_to_strip(classes);
  for (int64_t h = 0; h < C; ++h) {
    layer_norm(k, images, w.xc.data() + h * D, C * D, eps, w.head_input[h], w.head_rstd.data() + h * images);
    if (h == 0)
      gemm(k, images, w.head_input[h], head[h].forward, StoreRows{w.logits.data(), stride, head[h].bias.data()});
    else
      gemm(k, images, w.head_input[h], head[h].forward, AddToRows{w.logits.data(), stride, head[h].bias.data()});
  }
}

void FrozenVit::Impl::last_block_backward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  const Layer& layer = layers.back();
  const Saved& s = w.last;
  const int64_t R = images * tokens, C = class_tokens, Rc = images * C, D = width;
  gemm(k, Rc, w.dx_operand, layer.fc2.backward, ScaleToActivations{&w.dhidden, &s.gelu_derivative});
  gemm(k, Rc, w.dhidden, layer.fc1.backward, StoreRows{w.rows.data(), D});
  layer_norm_backward(k, Rc, {w.rows.data(), D, &s.xhat2, s.rstd2.data(), w.dxc.data(), D, &w.dx_operand});
  gemm(k, Rc, w.dx_operand, layer.proj.backward, StoreHeads{{&w.dout_last, nullptr, nullptr}});
  attention_backward(k, {&s.q, &s.k, &s.v, images},
                     {&w.dout_last, s.log_sum_exp.data(), &w.dq_last, 0, &w.dkv_last, 0, &w.dkv_last, D});
  gemm(k, Rc, w.dq_last, layer.q.backward, StoreRows{w.rows.data(), D});
  layer_norm_backward(k, Rc, {w.rows.data(), D, &w.last_xhat, w.last_rstd.data(), w.dxc.data(), D, nullptr});
  // What came to the class tokens goes to their places; keys and values add their part, and the sum becomes the next operand.
  std::memset(w.dx.data(), 0, sizeof(float) * R * D);
  for (int64_t b = 0; b < images; ++b) std::memcpy(w.dx.data() + b * tokens * D, w.dxc.data() + b * C * D, sizeof(float) * C * D);
  gemm(k, R, w.dkv_last, layer.kv.backward, StoreRows{w.rows.data(), D});
  layer_norm_backward(k, R, {w.rows.data(), D, &s.xhat1, s.rstd1.data(), w.dx.data(), D, &w.dx_operand});
}

void FrozenVit::Impl::backward(Workspace& w, int64_t images) const {
  const KernelSet& k = *kernels;
  const int64_t R = images * tokens, C = class_tokens, Rc = images * C, D = width;
  for (int64_t b = 0; b < images; ++b)
    for (int64_t c = 0; c < classes; ++c) w.dlogits_operand.set(b, c, w.dlogits[b * classes + c]);
  std::memset(w.dxc.data(), 0, sizeof(float) * Rc * D);
  for (int64_t h = 0; h < C; ++h) {
    gemm(k, images, w.dlogits_operand, head[h].backward, StoreRows{w.rows.data(), D});
    layer_norm_backward(k, images, {w.rows.data(), D, &w.head_input[h], w.head_rstd.data() + h * images, w.dxc.data() + h * D, C * D, nullptr});
  }
  for (int64_t r = 0; r < Rc; ++r)
    for (int64_t d = 0; d < D; ++d) w.dx_operand.set(r, d, w.dxc[r * D + d]);
  last_block_backward(w, images);
  for (size_t i = layers.size() - 1; i-- > 0;) {
    const Layer& layer = layers[i];
    const Saved& s = w.saved[i];
    gemm(k, R, w.dx_operand, layer.fc2.backward, ScaleToActivations{&w.dhidden, &s.gelu_derivative});
    gemm(k, R, w.dhidden, layer.fc1.backward, StoreRows{w.rows.data(), D});
    layer_norm_backward(k, R, {w.rows.data(), D, &s.xhat2, s.rstd2.data(), w.dx.data(), D, &w.dx_operand});
    gemm(k, R, w.dx_operand, layer.proj.backward, StoreHeads{{&w.dout, nullptr, nullptr}});
    attention_backward(k, {&s.q, &s.k, &s.v, images},
                       {&w.dout, s.log_sum_exp.data(), &w.dqkv, 0, &w.dqkv, D, &w.dqkv, 2 * D});
    gemm(k, R, w.dqkv, layer.qkv.backward, StoreRows{w.rows.data(), D});
    layer_norm_backward(k, R, {w.rows.data(), D, &s.xhat1, s.rstd1.data(), w.dx.data(), D, &w.dx_operand});
  }
  gemm(k, R, w.dx_operand, patch.backward, StoreRows{w.dpatches.data(), rounded_to_strip(geometry.columns())});
}

int64_t FrozenVit::Impl::packed_bytes() const {
  int64_t bytes = 0;
  const int64_t each = kernels->format == Format::kBf16 ? 2 : 4;
  const auto add = [&](const Product& p) {
    for (const PackedWeights* pack : {&p.forward, &p.backward}) bytes += pack->padded_outputs() * pack->padded_inputs() * each;
    bytes += static_cast<int64_t>(p.weight.size()) * 4;
  };
  add(patch);
  for (const auto& h : head) add(h);
  for (const auto& l : layers)
    for (const Product* p : {&l.qkv, &l.q, &l.kv, &l.proj, &l.fc1, &l.fc2}) add(*p);
  return bytes;
}

namespace {

Tensor plain(const Tensor& tensor) { return tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous(); }

std::span<const float> image_of(const Tensor& images, int64_t b) {
  const int64_t size = images[0].numel();
  return {images.data_ptr<float>() + b * size, static_cast<size_t>(size)};
}

// An unperturbed image is one whose reference is itself.
PatchSource source_of(const PatchGeometry& geometry, const Tensor& pixels, int64_t b) {
  const std::vector<int32_t> region(static_cast<size_t>(geometry.height) * geometry.width, 0);
  return PatchSource(geometry, image_of(pixels, b), image_of(pixels, b), region, 1);
}

// d loss / d pixels of one image from the rows of its patches.
void pixels_from_patch_rows(const PatchGeometry& g, const float* rows, int64_t stride, float* pixels) {
  const int across = g.width / g.patch;
  for (int64_t p = 0; p < g.patches(); ++p) {
    const float* row = rows + (g.prefix_tokens + p) * stride;
    const int64_t top = p / across * g.patch, left = p % across * g.patch;
    for (int c = 0; c < 3; ++c)
      for (int y = 0; y < g.patch; ++y)
        for (int x = 0; x < g.patch; ++x)
          pixels[(c * g.height + top + y) * g.width + left + x] =
              static_cast<float>(row[(c * g.patch + y) * g.patch + x] / g.std[c]);
  }
}

constexpr float kShown[] = {1.f};

}  // namespace

// The whole network as one node: keeps each chunk's workspace until the gradient has passed.
struct FrozenVitFunction : torch::autograd::Function<FrozenVitFunction> {
  using Impl = FrozenVit::Impl;
  struct State : torch::CustomClassHolder {
    std::shared_ptr<Impl> net;
    std::vector<std::unique_ptr<Impl::Workspace>> chunks;
    int64_t chunk = 0;
    ~State() override {
      for (auto& workspace : chunks)
        if (workspace) net->give_back(std::move(workspace));
    }
  };

  static Tensor run(const std::shared_ptr<Impl>& net, const Tensor& pixels, State* keep) {
    const Tensor in = plain(pixels);  // (B, 3, H, W)
    const int64_t B = in.size(0), chunk = net->chunk_size(B), chunks = (B + chunk - 1) / chunk;
    Tensor out = torch::empty({B, net->classes});
    if (keep) {
      keep->net = net;
      keep->chunk = chunk;
      keep->chunks.resize(chunks);
    }
    parallel_for(chunks, [&](int64_t c, int) {
      const int64_t first = c * chunk, n = std::min(chunk, B - first);
      auto w = net->take(chunk, keep != nullptr);
      for (int64_t i = 0; i < n; ++i)
        compose(*net->kernels, source_of(net->geometry, in, first + i), kShown, i * net->tokens, w->patches);
      net->forward(*w, n, keep != nullptr, nullptr, true);
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(out.data_ptr<float>() + (first + i) * net->classes, w->logits.data() + i * rounded_to_strip(net->classes),
                    sizeof(float) * net->classes);
      if (keep)
        keep->chunks[c] = std::move(w);
      else
        net->give_back(std::move(w));
    });
    return out;
  }

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& pixels, const std::shared_ptr<Impl>& net) {
    auto state = c10::make_intrusive<State>();
    Tensor out = run(net, pixels, state.get());
    context->saved_data["state"] = c10::IValue::make_capsule(state);
    context->saved_data["shape"] = pixels.sizes();
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list grads) {
    auto holder = context->saved_data["state"].toCapsule();
    auto& state = static_cast<State&>(*holder);
    const auto& net = state.net;
    const Tensor dlogits = plain(grads[0]);  // (B, C)
    const int64_t B = dlogits.size(0), chunk = state.chunk;
    Tensor out = torch::zeros(context->saved_data["shape"].toIntVector());
    const int64_t image_size = out[0].numel();
    parallel_for(static_cast<int64_t>(state.chunks.size()), [&](int64_t c, int) {
      const int64_t first = c * chunk, n = std::min(chunk, B - first);
      Impl::Workspace& w = *state.chunks[c];
      std::memcpy(w.dlogits.data(), dlogits.data_ptr<float>() + first * net->classes, sizeof(float) * n * net->classes);
      net->backward(w, n);
      const int64_t stride = rounded_to_strip(net->geometry.columns());
      for (int64_t i = 0; i < n; ++i)
        pixels_from_patch_rows(net->geometry, w.dpatches.data() + i * net->tokens * stride, stride,
                               out.data_ptr<float>() + (first + i) * image_size);
    });
    return {out.to(grads[0].device()), Tensor()};
  }
};

FrozenVit::FrozenVit(const FrozenVitWeights& weights, Precision precision) : impl_(std::make_shared<Impl>(weights, precision)) {}
FrozenVit::~FrozenVit() = default;

const KernelSet& FrozenVit::kernels() const { return *impl_->kernels; }
int64_t FrozenVit::packed_bytes() const { return impl_->packed_bytes(); }
int64_t FrozenVit::workspace_bytes() const { return impl_->largest_workspace; }

Tensor FrozenVit::logits(const Tensor& pixels) {
  check_shape(pixels, {-1, 3, impl_->geometry.height, impl_->geometry.width}, "pixels");
  if (impl_->classes == 0) throw input_error("logits: this network is an encoder without a head");
  if (!torch::GradMode::is_enabled() || !pixels.requires_grad()) return FrozenVitFunction::run(impl_, pixels, nullptr).to(pixels.device());
  impl_->prepare_backward();
  return FrozenVitFunction::apply(pixels, impl_);
}

std::vector<Tensor> FrozenVit::tokens_after(const Tensor& pixels, const std::vector<int>& blocks) {
  check_shape(pixels, {-1, 3, impl_->geometry.height, impl_->geometry.width}, "pixels");
  for (int block : blocks)
    if (block < 0 || block >= static_cast<int>(impl_->layers.size()))
      throw input_error("tokens after block {}: this network has blocks 0..{}", block, impl_->layers.size() - 1);
  const Tensor in = plain(pixels);
  const int64_t B = in.size(0), chunk = impl_->chunk_size(B), T = impl_->tokens, D = impl_->width;
  std::vector<Tensor> out;
  for (size_t i = 0; i < blocks.size(); ++i) out.push_back(torch::empty({B, T, D}));
  parallel_for((B + chunk - 1) / chunk, [&](int64_t c, int) {
    const int64_t first = c * chunk, n = std::min(chunk, B - first);
    auto w = impl_->take(chunk, false);
    for (int64_t i = 0; i < n; ++i)
      compose(*impl_->kernels, source_of(impl_->geometry, in, first + i), kShown, i * T, w->patches);
    impl_->forward(*w, n, false,
                   [&](int block, const float* x) {
                     for (size_t i = 0; i < blocks.size(); ++i)
                       if (blocks[i] == block) std::memcpy(out[i].data_ptr<float>() + first * T * D, x, sizeof(float) * n * T * D);
                   },
                   false);
    impl_->give_back(std::move(w));
  });
  return out;
}

FrozenVit::Probabilities FrozenVit::perturbed_probabilities(const Perturbed& images, bool with_gradient) {
  Impl& net = *impl_;
  const int64_t B = images.keep.size(0), S = images.keep.size(1), K = images.keep.size(2);
  check_shape(images.pixels, {B, 3, net.geometry.height, net.geometry.width}, "pixels");
  check_shape(images.reference, {B, 3, net.geometry.height, net.geometry.width}, "reference");
  check_shape(images.region, {net.geometry.height, net.geometry.width}, "region");
  check_shape(images.classes, {B}, "classes");
  if (with_gradient) net.prepare_backward();
  const Tensor pixels = plain(images.pixels), reference = plain(images.reference), keep = plain(images.keep);
  const Tensor region = images.region.to(torch::kCPU, torch::kInt32).contiguous();
  const Tensor classes = images.classes.to(torch::kCPU, torch::kInt64).contiguous();
  Probabilities result{torch::empty({B, S}), with_gradient ? torch::empty({B, S, K}) : Tensor()};

  std::vector<std::optional<PatchSource>> sources(B);
  parallel_for(B, [&](int64_t b, int) {
    sources[b].emplace(net.geometry, image_of(pixels, b), image_of(reference, b),
                       std::span<const int32_t>(region.data_ptr<int32_t>(), region.numel()), K);
  });
  // One list of B * S perturbed images, cut into chunks wherever it falls.
  const int64_t total = B * S, chunk = net.chunk_size(total);
  const int64_t stride = rounded_to_strip(net.geometry.columns()), logit_stride = rounded_to_strip(net.classes);
  const auto keep_of = [&](int64_t i) { return std::span<const float>(keep.data_ptr<float>() + i * K, static_cast<size_t>(K)); };
  parallel_for((total + chunk - 1) / chunk, [&](int64_t c, int) {
    const int64_t first = c * chunk, n = std::min(chunk, total - first);
    auto w = net.take(chunk, with_gradient);
    for (int64_t i = 0; i < n; ++i) compose(*net.kernels, *sources[(first + i) / S], keep_of(first + i), i * net.tokens, w->patches);
    net.forward(*w, n, with_gradient, nullptr, true);
    for (int64_t i = 0; i < n; ++i) {
      float* logits = w->logits.data() + i * logit_stride;
      softmax_rows(*net.kernels, 1, net.classes, logits, logit_stride, nullptr);
      const int64_t target = classes.data_ptr<int64_t>()[(first + i) / S];
      const float p = logits[target];
      result.probs.data_ptr<float>()[first + i] = p;
      if (!with_gradient) continue;
      float* d = w->dlogits.data() + i * net.classes;  // dp_t / dlogit_c = p_t ([c = t] - p_c)
      for (int64_t k = 0; k < net.classes; ++k) d[k] = -p * logits[k];
      d[target] += p;
    }
    if (with_gradient) {
      net.backward(*w, n);
      for (int64_t i = 0; i < n; ++i)
        compose_backward(*net.kernels, *sources[(first + i) / S], w->dpatches.data() + i * net.tokens * stride, stride,
                         std::span<float>(result.gradient.data_ptr<float>() + (first + i) * K, static_cast<size_t>(K)));
    }
    net.give_back(std::move(w));
  });
  return result;
}

}  // namespace aha
