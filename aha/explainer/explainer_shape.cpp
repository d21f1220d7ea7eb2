#include "aha/explainer/explainer_shape.h"

#include "aha/tensor/torch.h"

#include "aha/base/error.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/explainer/prior.h"

namespace aha {
Fields fields(ExplainerShape& s) {
  return Fields()
      .add("encoder", s.encoder,
           "features the explainer sees: target (its own taps), dinov3_vitl16:FILE, a model directory")
      .add("levels", s.levels,
           "taps of the encoder, finest first (block.2,block.5,..., stage.0,...); empty = the usual four")
      .add("scales", s.scales,
           "how a level is resized: s upsamples, 1 keeps, -s shrinks; empty = by the size of the images "
           "(paper: 4,2,1,-2)")
      .range(-16, 16)
      .add("channels", s.channels,
           "channels of the decoder's pyramid; 0 = by the size of the images (paper: 256)")
      .range(0, 4096)
      .add("top-channels", s.top, "channels after the fusion; 0 = by the size (paper: 128)")
      .range(0, 4096)
      .add("head-channels", s.head, "channels of the refinement head; 0 = by the size (paper: 64)")
      .range(0, 4096)
      .add("embedding", s.embedding,
           "width of the class embedding; 0 = begin from the target's own class rows (paper: 1024)")
      .range(0, 65536)
      .add("class-dot", s.class_dot, "token times class as a channel of each level; the paper has none")
      .add("output", s.output, "activation of the map")
      .choices({"none", "sigmoid"})
      .add("padding", s.padding, "of the decoder's 3x3 convolutions")
      .choices({"zeros", "replicate"})
      .add("prior", s.prior,
           "a map of the target's own to begin from; chefer costs a backward pass per map, logit-attribution "
           "and cam (ConvNets) none")
      .choices(kPriors)
      .add("prior-weight", s.prior_weight, "what the prior's order, 0 to 1, is multiplied by")
      .range(0, 1e6)
      .add("prior-parts", s.prior_parts,
           "the decoder sees the values that the prior is the order of, block by block: logit-attribution, "
           "cam");
}

std::unique_ptr<Explainer> make_explainer(Classifier& target, const ExplainerShape& shape,
                                          const Context& context) {
  const auto& info = target.info();
  const bool own = shape.encoder == "target";
  std::shared_ptr<Encoder> encoder;
  if (own) {
    const auto levels = shape.levels.empty() ? target.default_levels() : shape.levels;
    if (levels.empty())
      throw input_error(
          "--encoder target: {} ({}) shows no blocks or stages; expected --levels among its taps ({}) or "
          "another --encoder",
          info.name, info.architecture, list_some(target.tap_names()));
    encoder = encoder_from_target(target, levels);
  } else {
    encoder = load_encoder(
        shape.encoder, {.levels = shape.levels, .normalized = true, .input_size = info.input.size}, context);
  }

  const auto maps =
      encoder->features(torch::zeros({1, 3, info.input.size, info.input.size}).to(torch_device(context)));
  DecoderOptions o;
  o.widths.clear();
  for (const auto& map : maps) o.widths.push_back(static_cast<int>(map.size(1)));
  const bool flat = std::all_of(maps.begin(), maps.end(),
                                [&](const Tensor& map) { return map.size(2) == maps[0].size(2); });
  // Levels of one size become a pyramid (DPT's x4, x2, x1, /2); a ConvNet's stages are one already.
  const bool small = info.input.size <= 64;
  if (!shape.scales.empty())
    o.scales = shape.scales;
  else if (flat && maps.size() == 4 && maps[0].size(2) < info.input.size)
    o.scales = small ? std::vector<int>{2, 1, 1, -2} : std::vector<int>{4, 2, 1, -2};
  else
    o.scales.assign(maps.size(), 1);
  const int64_t finest = maps[0].size(2) * o.scales[0];
  o.last_up = 2 * finest <= info.input.size ? 2 : 1;
  const auto chosen = [](int given, int usual) { return given > 0 ? given : usual; };
  o.channels = chosen(shape.channels, small ? 32 : 64);
  o.top = chosen(shape.top, small ? 16 : 64);
  o.head = chosen(shape.head, small ? 16 : 32);
  const Tensor rows = target.head_weights();
  const bool from_rows = shape.embedding == 0 && rows.defined();
  o.embedding = from_rows ? static_cast<int>(rows.size(1)) : chosen(shape.embedding, small ? 32 : 64);
  o.classes = info.classes;
  // Raw activations differ in scale by orders of magnitude. Over a few channels (pixels have three) a
  // LayerNorm would lose what they say together.
  constexpr int kNormable = 16;
  o.level_norm =
      !encoder->info().normalized && *std::min_element(o.widths.begin(), o.widths.end()) >= kNormable;
  o.class_dot = shape.class_dot;
  o.output = shape.output;
  o.padding = shape.padding;
  o.prior = shape.prior;
  o.prior_weight = shape.prior_weight;
  if (shape.prior_parts) {
    o.prior_parts = prior_parts(shape.prior, target);
    if (o.prior_parts == 0)
      throw input_error("--prior-parts: expected --prior logit-attribution or cam, found {}", shape.prior);
  }

  torch::manual_seed(context.seed);
  auto explainer = std::make_unique<Explainer>(std::move(encoder), o, &target);
  if (o.prior != "none") explainer->decoder()->start_from_prior();
  if (from_rows) explainer->decoder()->start_embedding_from(rows.cpu());
  explainer->decoder()->to(torch_device(context));
  explainer->decoder()->set_precision(context.precision);
  return explainer;
}

}  // namespace aha
