#include "aha/explainer/explainer_onnx.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/square_side.h"
#include "aha/explainer/prior.h"
#include "aha/explainer/tap_encoder.h"
#include "aha/networks/onnx_forward.h"

namespace aha {
namespace {

OnnxValue conv_in_onnx(OnnxBuilder& g, const OnnxValue& x, const torch::nn::Conv2dImpl& conv,
                       const std::string& name) {
  const auto& o = conv.options;
  return g.conv(x, {name, conv.weight, conv.bias},
                {.stride = (*o.stride())[0],
                 .padding = conv.weight.size(2) / 2,
                 .groups = o.groups(),
                 .repeat_border = c10::get_if<torch::enumtype::kReplicate>(&o.padding_mode()) != nullptr});
}

OnnxValue batch_norm_in_onnx(OnnxBuilder& g, const OnnxValue& x, const torch::nn::BatchNorm2dImpl& norm,
                             const std::string& name) {
  return g.batch_norm(x, {name, norm.weight, norm.bias}, norm.running_mean, norm.running_var,
                      norm.options.eps());
}

OnnxValue residual_unit_in_onnx(OnnxBuilder& g, const OnnxValue& x, ResidualConvUnitImpl& unit,
                                const std::string& name) {
  const OnnxValue inner = conv_in_onnx(g, g.relu(x), *unit.conv1, name + ".conv1");
  return g.add(x, conv_in_onnx(g, g.relu(inner), *unit.conv2, name + ".conv2"));
}

// The decoder of dpt.h, line by line.
class DecoderInOnnx {
 public:
  DecoderInOnnx(OnnxBuilder& g, DecoderImpl& decoder) : g_(g), decoder_(decoder), options_(decoder.options) {}

  // prior: (B, H, W) in [0, 1], and its parts (B, N, h, w), where the options have them.
  OnnxValue map(const std::vector<OnnxValue>& levels, const OnnxValue& classes, int64_t H, int64_t W,
                const OnnxValue& prior, const OnnxValue& parts) {
    const OnnxValue e =
        g_.gather(g_.weight("decoder.class_embed.weight", decoder_.class_embed->weight), classes);  // (B, E)
    std::vector<OnnxValue> pyramid;
    for (size_t k = 0; k < levels.size(); ++k) pyramid.push_back(reassembled(levels[k], e, parts, k));
    OnnxValue p;
    for (size_t k = pyramid.size(); k-- > 0;) {
      p = fused(pyramid[k], k + 1 < pyramid.size() ? &p : nullptr, k);
      const int64_t up = options_.last_up;
      p = k > 0 ? g_.resize(p, pyramid[k - 1].size(2), pyramid[k - 1].size(3), true)
                : g_.resize(p, up * p.size(2), up * p.size(3), true);
    }
    const OnnxValue out = g_.resize(head(conv_in_onnx(g_, p, *decoder_.top, "decoder.top")), H, W, false);
    OnnxValue map = g_.reshape(out, {H, W});
    if (options_.prior != "none") map = g_.add(map, g_.scale(prior, options_.prior_weight));
    return options_.output == "sigmoid" ? g_.sigmoid(map) : map;
  }

 private:
  // (B, D, h, w), (B, E), (B, N, h, w) -> (B, c, h', w')
  OnnxValue reassembled(const OnnxValue& level, const OnnxValue& e, const OnnxValue& parts, size_t k) {
    const auto& o = options_;
    const std::string number = std::to_string(k);
    const int64_t D = level.size(1), h = level.size(2), w = level.size(3);
    OnnxValue x = g_.transpose(g_.reshape(level, {D, h * w}), {0, 2, 1});  // (B, N, D)
    if (o.level_norm) {
      const auto& norm = *decoder_.norms[k]->as<torch::nn::LayerNorm>();
      x = g_.layer_norm(x, {"decoder.norms." + number, norm.weight, norm.bias}, norm.options.eps());
    }
    const auto& proj = *decoder_.proj[k]->as<torch::nn::Linear>();
    const std::string name = "decoder.proj." + number;
    const OnnxValue of_class =
        g_.linear(e, {name + ".class", proj.weight.slice(1, D, D + o.embedding), proj.bias});
    OnnxValue y =
        g_.add(g_.linear(x, {name, proj.weight.slice(1, 0, D)}), g_.reshape(of_class, {1, o.channels}));
    if (o.class_dot) {
      const auto& asks = *decoder_.class_dot[k]->as<torch::nn::Linear>();
      const OnnxValue wanted = g_.linear(e, {"decoder.class_dot." + number, asks.weight});
      const OnnxValue found = g_.scale(g_.matmul(x, g_.reshape(wanted, {D, 1})),
                                       1 / std::sqrt(static_cast<double>(D)));  // (B, N, 1)
      y = g_.add(y, g_.multiply(found, g_.weight(name + ".dot", proj.weight.select(1, D + o.embedding))));
    }
    if (o.prior_parts > 0) {
      const OnnxValue places = g_.reshape(g_.resize(parts, h, w, false), {o.prior_parts, h * w});
      const auto& of_parts = *decoder_.prior_parts[k]->as<torch::nn::Linear>();
      y = g_.add(
          y, g_.linear(g_.transpose(places, {0, 2, 1}), {"decoder.prior_parts." + number, of_parts.weight}));
    }
    OnnxValue map = g_.reshape(g_.transpose(g_.gelu(y), {0, 2, 1}), {o.channels, h, w});
    if (o.scales[k] > 1) {
      const auto& up = *decoder_.reassemble[k]->as<torch::nn::ConvTranspose2d>();
      map = g_.conv_transpose(map, {"decoder.reassemble." + number, up.weight, up.bias});
    } else if (o.scales[k] < 0) {
      map = conv_in_onnx(g_, map, *decoder_.reassemble[k]->as<torch::nn::Conv2d>(),
                         "decoder.reassemble." + number);
    }
    return conv_in_onnx(g_, map, *decoder_.rn[k]->as<torch::nn::Conv2d>(), "decoder.rn." + number);
  }

  OnnxValue fused(const OnnxValue& skip, const OnnxValue* deeper, size_t k) {
    auto& fusion = *decoder_.fuse[k]->as<Fusion>();
    const std::string name = "decoder.fuse." + std::to_string(k);
    const OnnxValue both =
        deeper ? g_.add(*deeper, residual_unit_in_onnx(g_, skip, *fusion.rcu1, name + ".rcu1")) : skip;
    return conv_in_onnx(g_, residual_unit_in_onnx(g_, both, *fusion.rcu2, name + ".rcu2"), *fusion.out,
                        name + ".out");
  }

  OnnxValue head(const OnnxValue& x) {
    auto& h = *decoder_.head;
    OnnxValue y = conv_in_onnx(g_, conv_in_onnx(g_, x, *h.dw, "decoder.head.dw"), *h.pw, "decoder.head.pw");
    y = g_.gelu(batch_norm_in_onnx(g_, y, *h.bn1, "decoder.head.bn1"));
    y = conv_in_onnx(g_, y, *h.conv, "decoder.head.conv");
    y = g_.gelu(batch_norm_in_onnx(g_, y, *h.bn2, "decoder.head.bn2"));
    return conv_in_onnx(g_, y, *h.out, "decoder.head.out");
  }

  OnnxBuilder& g_;
  DecoderImpl& decoder_;
  const DecoderOptions& options_;
};

// map_of_order (prior.h)
OnnxValue map_of_order_in_onnx(OnnxBuilder& g, const OnnxValue& values, int size) {
  const int64_t n = values.size(1), side = square_side(n);
  if (side == 0) throw input_error("prior: expected a square grid of patches, found {}", n);
  const OnnxValue order = g.scale(g.ranks(values), n > 1 ? 1 / static_cast<double>(n - 1) : 0);
  return g.reshape(g.resize(g.reshape(order, {1, side, side}), size, size, false), {size, size});
}

// (B, N, n) -> (B, N, 1)
OnnxValue deviation_in_onnx(OnnxBuilder& g, const OnnxValue& x) {
  const OnnxValue centered = g.subtract(x, g.mean(x, {2}, true));
  return g.square_root(g.mean(g.multiply(centered, centered), {2}, true));
}

// scaled_parts (prior.h)
OnnxValue scaled_parts_in_onnx(OnnxBuilder& g, const OnnxValue& values) {
  const int64_t N = values.size(1), side = square_side(values.size(2));
  const OnnxValue of_sum = g.scale(deviation_in_onnx(g, g.sum(values, {1}, true)), 0.1);
  const OnnxValue scale = g.add(g.add(deviation_in_onnx(g, values), of_sum), g.number(1e-12));
  return g.reshape(g.divide(values, scale), {N, side, side});
}

}  // namespace

std::string onnx_refusal(const DecoderOptions& decoder) {
  if (prior_backwards(decoder.prior) == 0) return "";
  std::string forward_only;
  for (const auto& name : kPriors)
    if (prior_backwards(name) == 0) forward_only += (forward_only.empty() ? "" : ", ") + name;
  return fmt::format(
      "expected an explainer whose prior needs no backward pass ({}), found {}: an ONNX graph computes "
      "forward "
      "only",
      forward_only, decoder.prior);
}

void write_onnx(OnnxBuilder& g, Explainer& explainer, Classifier* target, int size) {
  const torch::NoGradGuard no_grad;
  auto& decoder = *explainer.decoder();
  if (const auto refusal = onnx_refusal(decoder.options); !refusal.empty()) throw input_error("{}", refusal);
  auto& encoder = dynamic_cast<TapEncoder&>(explainer.encoder());
  const OnnxValue image = g.input("image", {-1, 3, size, size});
  const OnnxValue given = g.input("class", {-1}, true);
  std::map<Classifier*, OnnxForward> passes;
  const auto forward_of = [&](Classifier& network) -> const OnnxForward& {
    const auto [found, fresh] = passes.try_emplace(&network);
    if (fresh)
      found->second = onnx_source(network).write_onnx(g, network_input(g, image, network.info().input));
    return found->second;
  };

  OnnxValue classes = given, predicted;
  if (target) {
    predicted = g.arg_max(forward_of(*target).logits);
    classes = g.chosen(given, predicted);
  }
  const auto maps =
      maps_from_taps(g, forward_of(encoder.network()), encoder.taps(), encoder.network().prefix_tokens());
  std::vector<OnnxValue> levels;
  for (const auto& taps : encoder.taps_of_levels()) {
    std::vector<OnnxValue> parts;
    for (const size_t tap : taps) parts.push_back(maps[tap]);
    levels.push_back(g.concat(parts, 1));
  }
  OnnxValue prior, parts;
  if (decoder.options.prior != "none") {
    if (!target)
      throw input_error("prior {}: expected the target that it is a map of, found none",
                        decoder.options.prior);
    const OnnxValue shares = onnx_source(*target).write_onnx_shares(g, forward_of(*target), classes);
    prior = map_of_order_in_onnx(g, g.sum(shares, {1}), size);
    if (decoder.options.prior_parts > 0) parts = scaled_parts_in_onnx(g, shares);
  }
  g.output("map", DecoderInOnnx(g, decoder).map(levels, classes, size, size, prior, parts));
  if (!target) return;
  g.output("logits", forward_of(*target).logits);
  g.output("predicted", predicted, true);
}

}  // namespace aha
