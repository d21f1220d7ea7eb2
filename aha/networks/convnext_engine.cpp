#include "aha/networks/convnext_engine.h"

namespace aha {

bool engine_fits(const ConvNextConfig& c, const InputSpec& input) {
  return input.size % (c.stem_stride << (c.depths.size() - 1)) == 0 &&
         std::ranges::all_of(c.widths, [](int width) { return width % 32 == 0; });
}

FrozenConvNextWeights frozen_weights_from(ConvNext& network, const InputSpec& input) {
  const auto conv = [](torch::nn::Sequential& list, size_t i) { return list[i]->as<torch::nn::Conv2d>(); };
  const auto norm = [](torch::nn::Sequential& list, size_t i) { return list[i]->as<ChannelNorm>(); };
  FrozenConvNextWeights w;
  w.height = w.width = input.size;
  w.stem_stride = network->config.stem_stride;
  w.eps = network->config.eps;
  w.head_eps = network->config.head_eps;
  w.mean = input.mean;
  w.std = input.std;
  w.stem_weight = weights_for_rgb(conv(network->stem, 0)->weight, input);
  w.stem_bias = conv(network->stem, 0)->bias;
  w.stem_norm_weight = norm(network->stem, 1)->weight;
  w.stem_norm_bias = norm(network->stem, 1)->bias;
  for (size_t s = 0; s < network->stages->size(); ++s) {
    auto& from = *network->stages[s]->as<ConvNextStage>();
    FrozenConvNextWeights::Stage stage;
    if (s > 0) {
      stage.norm_weight = norm(from.downsample, 0)->weight;
      stage.norm_bias = norm(from.downsample, 0)->bias;
      stage.down_weight = conv(from.downsample, 1)->weight;
      stage.down_bias = conv(from.downsample, 1)->bias;
    }
    for (auto& block : *from.blocks) stage.blocks.push_back(block->as<ConvBlock>()->weights());
    w.stages.push_back(std::move(stage));
  }
  w.head_norm_weight = network->head->norm->weight;
  w.head_norm_bias = network->head->norm->bias;
  w.head_weight = network->head->fc->weight;
  w.head_bias = network->head->fc->bias;
  return w;
}

}  // namespace aha
