#include "aha/networks/classifier.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/image/resize_crop.h"

namespace aha {
namespace {

// (B, N, C) -> (B, C, h, w) with the aspect h / w of the image
Tensor map_from_tokens(const Tensor& tokens, const std::string& name, double aspect) {
  const auto N = tokens.size(1);
  const auto h = std::max<int64_t>(1, std::llround(std::sqrt(static_cast<double>(N) * aspect)));
  if (N % h != 0 || std::abs(static_cast<double>(h * h) / static_cast<double>(N) - aspect) > 0.5 * aspect)
    throw input_error("tap {}: expected a grid of patches of aspect {}, found {} patches", name, aspect, N);
  return tokens.transpose(1, 2).unflatten(2, {h, N / h});
}

Tensor map_from_tap(const Tensor& tap, const std::string& name, int prefix, double aspect) {
  if (name.ends_with(".attention")) {
    const auto T = tap.size(3);
    return map_from_tokens(tap.select(2, 0).slice(2, prefix).transpose(1, 2) * static_cast<double>(T), name,
                           aspect);
  }
  if (tap.dim() == 4) return tap;
  return map_from_tokens(name == "patch_embed" ? tap : tap.slice(1, prefix), name, aspect);
}

std::vector<Tensor> maps_of_aspect(const std::vector<Tensor>& values, const std::vector<std::string>& names,
                                   int prefix_tokens, double aspect) {
  std::vector<Tensor> maps;
  for (size_t i = 0; i < names.size(); ++i)
    maps.push_back(map_from_tap(values[i], names[i], prefix_tokens, aspect));
  return maps;
}

}  // namespace

std::vector<Tensor> maps_from_taps(const std::vector<Tensor>& values, const std::vector<std::string>& names,
                                   int prefix_tokens) {
  return maps_of_aspect(values, names, prefix_tokens, 1);
}

std::vector<Tensor> Classifier::features(const Tensor& pixels, const std::vector<std::string>& taps) {
  const torch::NoGradGuard no_grad;
  // Libtorch's last bits differ with the number of images: each image by itself.
  const int64_t together = pixels.is_cpu() ? 1 : pixels.size(0);
  std::vector<std::vector<Tensor>> parts(taps.size());
  for (int64_t first = 0; first < pixels.size(0); first += together) {
    Taps kept(taps);
    logits(pixels.narrow(0, first, together), &kept);
    for (size_t i = 0; i < taps.size(); ++i) parts[i].push_back(kept.at(taps[i]));
  }
  std::vector<Tensor> values;
  for (const auto& part : parts) values.push_back(part.size() == 1 ? part[0] : torch::cat(part));
  return maps_of_aspect(values, taps, prefix_tokens(),
                        static_cast<double>(pixels.size(2)) / static_cast<double>(pixels.size(3)));
}

void Classifier::visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit& visit,
                                 const AttentionVisitor& visitor) {
  using Gradient = AttentionVisit::Gradient;
  std::vector<std::string> taps;  // of blocks, and of their attention
  int blocks = 0;
  for (const auto& name : tap_names())
    if (name.ends_with(".attention") && blocks++ >= visit.first_block)
      taps.insert(taps.end(), {name.substr(0, name.rfind('.')), name});
  const size_t shown = taps.size();
  if (visit.gradient == Gradient::kDirect)
    for (size_t i = 0; i < shown; i += 2) taps.push_back(taps[i] + ".norm1");
  if (blocks == 0)
    throw input_error("{}: expected a network with attention, found {}", info_.name, info_.architecture);
  const bool backward = visit.gradient != Gradient::kNone && visit.gradient != Gradient::kDirect;
  const torch::AutoGradMode with_grad(backward);
  for (int64_t b = 0; b < pixels.size(0); ++b) {  // libtorch's last bits differ with the number of images
    Taps kept(taps);
    const int64_t wanted = classes[b].item<int64_t>();
    const Tensor x = pixels.narrow(0, b, 1).detach().clone().requires_grad_(backward);
    const Tensor logits_of_x = logits(x, &kept);
    std::vector<Tensor> attention, gradients(shown / 2);
    for (size_t i = 1; i < shown; i += 2) attention.push_back(kept.at(taps[i]));
    if (visit.gradient == Gradient::kLogit)
      gradients = torch::autograd::grad({logits_of_x[0][wanted]}, attention);
    Tensor stream;  // (Q, D)
    if (visit.gradient == Gradient::kDirect) {
      Tensor weights = torch::full_like(logits_of_x[0], -1.0 / static_cast<double>(logits_of_x.size(1)));
      weights[wanted] += 1;
      stream = head_direction(kept.at(taps[shown - 2])[0], weights);
    }
    for (size_t i = attention.size(); i-- > 0;) {
      const int block = visit.first_block + static_cast<int>(i);
      Tensor weights = attention[i].detach()[0];  // (heads, T, T)
      if (visit.gradient == Gradient::kReadOutClass || visit.gradient == Gradient::kReadOutMean) {
        Tensor tokens = kept.at(taps[2 * i]);
        // One copy for each token that a head reads: a distilled network has two.
        if (visit.gradient == Gradient::kReadOutMean)
          tokens = tokens.mean(1, true).expand({-1, prefix_tokens(), -1});
        gradients[i] = torch::autograd::grad({read_out(tokens)[0][wanted]}, {attention[i]}, {}, true)[0];
      }
      if (visit.gradient == Gradient::kDirect) {
        gradients[i] = attention_gradient(block, kept.at(taps[shown + i])[0], stream).unsqueeze(0);
        weights = weights.slice(1, 0, stream.size(0));
      }
      visitor(b, block, weights, gradients[i].defined() ? gradients[i][0] : Tensor());
    }
  }
}

void Classifier::visit_attention_relevance(const Tensor&, const Tensor&, int, const AttentionVisitor&) {
  throw input_error("{}: expected a vision transformer, whose attention has a relevance, found {}",
                    info_.name, info_.architecture);
}

Tensor Classifier::patch_subset_logits(const Tensor&, const Tensor&) {
  throw input_error("{}: expected a vision transformer, whose patches can be left out, found {}", info_.name,
                    info_.architecture);
}

Tensor Classifier::logits_from_features(const Tensor&) {
  throw input_error("{}: expected a ConvNet that ends in pooled feature maps, found {}", info_.name,
                    info_.architecture);
}

Tensor Classifier::head_direction(const Tensor& read, const Tensor& weights) {
  const torch::AutoGradMode with_grad(true);
  const Tensor pooled = read.detach().clone().requires_grad_(true);
  const Tensor logits = logits_from_features(pooled.unsqueeze(2).unsqueeze(3));  // (n, C)
  return torch::autograd::grad({(logits * weights).sum()}, {pooled})[0];
}

Tensor Classifier::attention_gradient(int, const Tensor&, const Tensor&) {
  throw input_error("{}: expected a vision transformer, whose attention writes into its tokens, found {}",
                    info_.name, info_.architecture);
}

Tensor Classifier::read_out(const Tensor&) {
  throw input_error("{}: expected a vision transformer, whose tokens can be read out, found {}", info_.name,
                    info_.architecture);
}

Tensor input_from_image(const Image& image, const InputSpec& spec) {
  const bool short_side = spec.rule == ResizeRule::kShortSide;
  if (short_side && spec.crop)
    return tensor_from_image(resized_and_cropped(image, spec.resize, spec.size, spec.filter));
  Image ready = image;
  if (short_side) ready = resized_short_side(image, spec.resize, spec.filter);
  if (spec.rule == ResizeRule::kStretch) ready = resized(image, spec.resize, spec.resize, spec.filter);
  if (spec.crop) ready = center_cropped(ready, spec.size);
  if (ready.width != spec.size || ready.height != spec.size)
    throw input_error("image: expected {0} x {0} pixels after preprocessing, found {1} x {2}", spec.size,
                      ready.width, ready.height);
  return tensor_from_image(ready);  // (3, size, size)
}

Tensor normalized(const Tensor& pixels, const InputSpec& spec) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  const auto channel = [&](const std::array<double, 3>& values) {
    return torch::tensor({values[0], values[1], values[2]}, pixels.options().requires_grad(false))
        .view({1, 3, 1, 1});
  };
  return (pixels - channel(spec.mean)) / channel(spec.std);
}

Tensor network_input(const Tensor& pixels, const InputSpec& spec) {
  const Tensor rgb = normalized(pixels, spec);
  return spec.order == ChannelOrder::kBgr ? rgb.flip(1) : rgb;
}

Tensor weights_for_rgb(const Tensor& weights, const InputSpec& spec) {
  return spec.order == ChannelOrder::kBgr ? weights.flip(1) : weights;
}

InputSpec with_overrides(InputSpec spec, const LoadOptions& options) {
  if (options.input_size && *options.input_size != spec.size) {
    if (*options.input_size < 1 || *options.input_size > 16384)
      throw input_error("--input-size: expected 1..16384 pixels, found {}", *options.input_size);
    spec.resize =
        static_cast<int>(std::lround(static_cast<double>(spec.resize) * *options.input_size / spec.size));
    spec.size = *options.input_size;
  }
  if (options.mean) spec.mean = *options.mean;
  if (options.std) spec.std = *options.std;
  for (const double s : spec.std)
    if (!(s > 0)) throw input_error("--std: expected numbers above 0, found {}", s);
  return spec;
}

}  // namespace aha
