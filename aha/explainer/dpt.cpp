#include "aha/explainer/dpt.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/explainer/prior.h"
#include "aha/nn/border_gelu.h"
#include "aha/nn/row_gemm.h"
#include "aha/nn/trainable_linear.h"

namespace aha {
namespace {

torch::nn::Conv2d conv3x3(int64_t in, int64_t out, bool replicate, int64_t stride = 1, bool bias = true,
                          int64_t groups = 1) {
  auto options = torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(bias).groups(groups);
  if (replicate) options.padding_mode(torch::kReplicate);
  return torch::nn::Conv2d(options);
}

torch::nn::Conv2d conv1x1(int64_t in, int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1));
}

// Without a gradient a map must not depend on its batch mates (nn/row_gemm.h). Training stays on
// libtorch.
bool by_rows(const Tensor& x) {
  return !torch::GradMode::is_enabled() && x.is_cpu() && x.scalar_type() == torch::kFloat32;
}

const KernelSet& exact() {
  return best_kernel_set(Precision::kF32);
}

// The convolution of conv3x3(): repeated borders come from nn/border_gelu.h, which is several times as fast
// as libtorch's.
Tensor convolved(torch::nn::Conv2dImpl& conv, const Tensor& x) {
  const auto& o = conv.options;
  const bool replicate = c10::get_if<torch::enumtype::kReplicate>(&o.padding_mode());
  if (!replicate && !by_rows(x)) return conv.forward(x);
  const Tensor in = replicate ? with_border(x) : at::constant_pad_nd(x, {1, 1, 1, 1});
  if (!by_rows(x))
    return at::conv2d(in, conv.weight, conv.bias, o.stride(), at::IntArrayRef{0, 0}, o.dilation(),
                      o.groups());
  if (o.groups() > 1) return depthwise_by_rows(in, conv.weight, conv.bias);
  return convolution_by_rows(exact(), in, conv.weight, conv.bias, (*o.stride())[0]);
}

// The convolution of conv1x1().
Tensor pointwise(torch::nn::Conv2dImpl& conv, const Tensor& x) {
  return by_rows(x) ? convolution_by_rows(exact(), x, conv.weight, conv.bias) : conv.forward(x);
}

Tensor upsampled(torch::nn::ConvTranspose2dImpl& conv, const Tensor& x) {
  return by_rows(x) ? upsample_by_rows(exact(), x, conv.weight, conv.bias) : conv.forward(x);
}

Tensor resized_to(const Tensor& x, int64_t h, int64_t w, bool align_corners) {
  if (x.size(2) == h && x.size(3) == w) return x;
  return at::upsample_bilinear2d(x, {h, w}, align_corners);
}

}  // namespace

Fields fields(DecoderOptions& o) {
  Fields list;
  list.add("widths", o.widths, "channels of each level, finest first").range(1, 1 << 20);
  list.add("scales", o.scales, "how a level is resized: s upsamples, 1 keeps, -s shrinks").range(-16, 16);
  list.add("classes", o.classes, "rows of the class embedding").range(1, 1000000);
  list.add("embedding", o.embedding, "width of the class embedding").range(1, 65536);
  list.add("channels", o.channels, "channels of the pyramid").range(1, 65536);
  list.add("top", o.top, "channels after the fusion").range(1, 65536);
  list.add("head", o.head, "channels of the refinement head").range(1, 65536);
  list.add("last_up", o.last_up, "upsampling of the finest map before the head").range(1, 16);
  list.add("level_norm", o.level_norm, "a LayerNorm of its own on each level");
  list.add("class_dot", o.class_dot, "a channel per level: token times class");
  list.add("output", o.output, "activation of the map").choices({"none", "sigmoid"});
  list.add("padding", o.padding, "of 3x3 convolutions").choices({"zeros", "replicate"});
  list.add("prior", o.prior, "a map of the target's own to begin from").choices(kPriors);
  list.add("prior_weight", o.prior_weight, "what the prior is multiplied by").range(0, 1e6);
  list.add("prior_parts", o.prior_parts, "channels of the prior's parts").range(0, 65536);
  return list;
}

void ResidualConvUnitImpl::reset() {
  conv1 = register_module("conv1", conv3x3(channels, channels, replicate));
  conv2 = register_module("conv2", conv3x3(channels, channels, replicate));
}

Tensor ResidualConvUnitImpl::forward(const Tensor& x) {
  return x + convolved(*conv2, torch::relu(convolved(*conv1, torch::relu(x))));
}

void FusionImpl::reset() {
  if (!deepest) rcu1 = register_module("rcu1", ResidualConvUnit(channels, replicate));
  rcu2 = register_module("rcu2", ResidualConvUnit(channels, replicate));
  out = register_module("out", conv1x1(channels, channels));
}

Tensor FusionImpl::forward(const Tensor& skip, const Tensor& deeper) {
  return pointwise(*out, rcu2(deepest ? skip : deeper + rcu1(skip)));
}

void RefinementHeadImpl::reset() {
  dw = register_module("dw", conv3x3(in, in, replicate, 1, true, in));
  pw = register_module("pw", conv1x1(in, in));
  bn1 = register_module("bn1", torch::nn::BatchNorm2d(in));
  conv = register_module("conv", conv3x3(in, hidden, replicate));
  bn2 = register_module("bn2", torch::nn::BatchNorm2d(hidden));
  out = register_module("out", conv1x1(hidden, 1));
}

Tensor RefinementHeadImpl::forward(const Tensor& x) {
  const auto separable = gelu_of(bn1(pointwise(*pw, convolved(*dw, x))));
  return pointwise(*out, gelu_of(bn2(convolved(*conv, separable))));
}

void DecoderImpl::reset() {
  const auto& o = options;
  if (o.widths.empty() || o.widths.size() != o.scales.size())
    throw input_error("decoder: expected as many scales as levels, found {} and {}", o.scales.size(),
                      o.widths.size());
  const bool replicate = o.padding == "replicate";
  const auto c = o.channels;
  class_embed = register_module("class_embed", torch::nn::Embedding(o.classes, o.embedding));
  norms = torch::nn::ModuleList();
  if (o.level_norm) register_module("norms", norms);
  class_dot = torch::nn::ModuleList();
  if (o.class_dot) register_module("class_dot", class_dot);
  proj = register_module("proj", torch::nn::ModuleList());
  prior_parts = torch::nn::ModuleList();
  if (o.prior_parts > 0) register_module("prior_parts", prior_parts);
  reassemble = register_module("reassemble", torch::nn::ModuleList());
  rn = register_module("rn", torch::nn::ModuleList());
  fuse = register_module("fuse", torch::nn::ModuleList());
  for (size_t k = 0; k < o.widths.size(); ++k) {
    const int s = o.scales[k];
    if (s == 0 || s == -1)
      throw input_error("decoder: scale of level {}: expected s > 0 or s < -1, found {}", k, s);
    if (o.level_norm) norms->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({o.widths[k]})));
    if (o.class_dot)
      class_dot->push_back(torch::nn::Linear(torch::nn::LinearOptions(o.embedding, o.widths[k]).bias(false)));
    proj->push_back(torch::nn::Linear(o.widths[k] + o.embedding + (o.class_dot ? 1 : 0), c));
    if (o.prior_parts > 0)
      prior_parts->push_back(torch::nn::Linear(torch::nn::LinearOptions(o.prior_parts, c).bias(false)));
    if (s > 1)
      reassemble->push_back(torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(c, c, s).stride(s)));
    else if (s < 0)
      reassemble->push_back(conv3x3(c, c, replicate, -s));
    else
      reassemble->push_back(torch::nn::Identity());
    rn->push_back(conv3x3(c, c, replicate, 1, false));
    fuse->push_back(Fusion(c, k + 1 == o.widths.size(), replicate));
  }
  top = register_module("top", conv3x3(c, o.top, replicate));
  head = register_module("head", RefinementHead(o.top, o.head, replicate));
}

Tensor DecoderImpl::projected(size_t k, const Tensor& x, const Tensor& e) {
  const auto& o = options;
  auto* linear = proj[k]->as<torch::nn::Linear>();
  const int64_t D = o.widths[k];
  const auto W_x = linear->weight.slice(1, 0, D), W_e = linear->weight.slice(1, D, D + o.embedding);
  auto y = matmul(x, W_x) + matmul(e, W_e, linear->bias).unsqueeze(1);  // (B, N, c)
  if (!o.class_dot) return y;
  const auto wanted = matmul(e, class_dot[k]->as<torch::nn::Linear>()->weight).unsqueeze(2);  // (B, D, 1)
  const auto found = torch::matmul(x, wanted) / std::sqrt(static_cast<double>(D));            // (B, N, 1)
  return y + found * linear->weight.select(1, D + o.embedding);
}

Tensor DecoderImpl::forward(const std::vector<Tensor>& levels, const Tensor& classes, int64_t H, int64_t W,
                            const Tensor& prior, const Tensor& parts) {
  const auto& o = options;
  if (levels.size() != o.widths.size())
    throw input_error("decoder: expected {} levels, found {}", o.widths.size(), levels.size());
  const auto B = classes.size(0);
  const auto e = class_embed(classes);  // (B, E)
  if (o.prior_parts > 0) check_shape(parts, {B, o.prior_parts, -1, -1}, "parts of the decoder's prior");
  std::vector<Tensor> pyramid;
  for (size_t k = 0; k < levels.size(); ++k) {
    check_shape(levels[k], {B, o.widths[k], -1, -1}, fmt::format("level {} of the decoder", k));
    const auto h = levels[k].size(2), w = levels[k].size(3);
    auto x = levels[k].flatten(2).transpose(1, 2);  // (B, N, D)
    if (o.level_norm) x = norms[k]->as<torch::nn::LayerNorm>()->forward(x);
    auto y = projected(k, x, e);
    if (o.prior_parts > 0)
      y = y + matmul(resized_to(parts, h, w, false).flatten(2).transpose(1, 2),
                     prior_parts[k]->as<torch::nn::Linear>()->weight);
    // libtorch 1.13's own gelu hands a contiguous input to oneDNN and then leaves the gradient unset (1e10
    // and more) where the gradient that comes back has other strides.
    auto map = gelu_of(y.transpose(1, 2).unflatten(2, {h, w}));  // (B, c, h, w), channels-last in memory
    if (o.scales[k] > 1)
      map = upsampled(*reassemble[k]->as<torch::nn::ConvTranspose2d>(), map);
    else if (o.scales[k] < 0)
      map = convolved(*reassemble[k]->as<torch::nn::Conv2d>(), map);
    pyramid.push_back(convolved(*rn[k]->as<torch::nn::Conv2d>(), map));
  }
  Tensor p;
  for (size_t k = pyramid.size(); k-- > 0;) {
    p = fuse[k]->as<Fusion>()->forward(pyramid[k], p);
    const auto h = k > 0 ? pyramid[k - 1].size(2) : p.size(2) * o.last_up;
    const auto w = k > 0 ? pyramid[k - 1].size(3) : p.size(3) * o.last_up;
    p = resized_to(p, h, w, true);
  }
  auto map = resized_to(head(convolved(*top, p)), H, W, false).squeeze(1);  // (B, H, W)
  if (o.prior != "none") {
    check_shape(prior, {B, H, W}, "prior of the decoder");
    map = map + o.prior_weight * prior;
  }
  return o.output == "sigmoid" ? torch::sigmoid(map) : map;
}

void DecoderImpl::become(const DecoderImpl& other) {
  const torch::NoGradGuard no_grad;
  const auto copy = [](const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
    TORCH_CHECK(to.size() == from.size(), "a decoder of other options");
    for (size_t i = 0; i < to.size(); ++i) to[i].copy_(from[i]);
  };
  copy(parameters(), other.parameters());
  copy(buffers(), other.buffers());
  kernels_ = other.kernels_;
}

void DecoderImpl::set_precision(Precision precision) {
  kernels_ = precision == Precision::kBf16 ? &best_kernel_set(precision) : nullptr;
}

Tensor DecoderImpl::matmul(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
  if (kernels_ && trainable_linear_fits(x, weight)) return trainable_linear(*kernels_, x, weight, bias);
  if (by_rows(x)) return linear_by_rows(exact(), x, weight, bias);
  return at::linear(x, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::nullopt);
}

void DecoderImpl::start_from_prior() {
  const torch::NoGradGuard no_grad;
  head->out->weight.zero_();
  head->out->bias.zero_();
}

void DecoderImpl::start_embedding_from(const Tensor& rows) {
  check_shape(rows, {options.classes, options.embedding}, "rows of the class embedding");
  const torch::NoGradGuard no_grad;
  const auto centered = rows - rows.mean();
  class_embed->weight.copy_(centered / centered.std().clamp_min(1e-12));
  for (size_t k = 0; k < class_dot->size(); ++k)
    if (options.widths[k] >= options.embedding)
      class_dot[k]->as<torch::nn::Linear>()->weight.copy_(torch::eye(options.widths[k], options.embedding));
}

}  // namespace aha
