#include "aha/networks/vit_engine.h"

namespace aha {

bool engine_fits(const VitConfig& c, const InputSpec& input) {
  const VitBlockOptions block{c.width, c.heads, c.mlp_hidden, c.eps, c.swiglu};
  return c.depth >= 2 && block.fits() && input.size % c.patch == 0;
}

FrozenVitWeights frozen_weights_from(Vit& network, const InputSpec& input) {
  const torch::NoGradGuard no_grad;
  FrozenVitWeights w;
  w.height = w.width = input.size;
  w.patch = network->config.patch;
  w.heads = network->config.heads;
  w.class_tokens = network->config.distilled ? 2 : 1;
  w.eps = network->config.eps;
  w.mean = input.mean;
  w.std = input.std;
  w.patch_weight = weights_for_rgb(network->patch_embed->proj->weight, input).flatten(1);  // (D, 3 P P)
  // A black input embeds to the patch bias plus the positions: tokens as they are before any image.
  const Tensor empty =
      network->embed(torch::zeros({1, 3, w.height, w.width}, w.patch_weight.options()))[0];  // (T, D)
  const int64_t prefix = network->prefix_tokens();
  w.prefix = empty.slice(0, 0, prefix);
  w.positions = empty.slice(0, prefix);
  w.patch_bias = torch::zeros({network->config.width});
  if (network->config.rope) {
    const RopeTable table = network->rope(w.height / w.patch, w.width / w.patch);
    w.rope_cos = table.cos;
    w.rope_sin = table.sin;
  }
  w.swiglu = network->config.swiglu;
  for (auto& block : *network->blocks) w.blocks.push_back(block->as<TransformerBlock>()->weights());
  w.norm_weight = network->norm->weight;
  w.norm_bias = network->norm->bias;
  if (network->config.classes > 0) {
    w.head_weight.push_back(network->head->weight);
    w.head_bias.push_back(network->head->bias);
    if (network->config.distilled) {
      w.head_weight.push_back(network->head_dist->weight);
      w.head_bias.push_back(network->head_dist->bias);
    }
  }
  return w;
}

}  // namespace aha
