#include "aha/networks/network.h"

#include "aha/base/error.h"
#include "aha/nn/module_state.h"

namespace aha {

Tensor Network::patch_subset_logits(const Tensor&, const Tensor&) {
  throw input_error("expected a vision transformer, whose patches can be left out, found a {}", family());
}

Tensor Network::logits_from_features(const Tensor&) {
  throw input_error("expected a ConvNet that ends in pooled feature maps, found a {}", family());
}

Tensor Network::read_out(const Tensor&) {
  throw input_error("expected a vision transformer, whose tokens can be read out, found a {}", family());
}

Tensor Network::attention_gradient(int, const Tensor&, const Tensor&) {
  throw input_error("expected a vision transformer, whose attention writes into its tokens, found a {}",
                    family());
}

void Network::visit_attention_relevance(const Tensor&, int64_t, int, const BlockVisitor&) {
  throw input_error("expected a vision transformer, whose attention has a relevance, found a {}", family());
}

void Network::load_weights(TensorTable table) {
  load_state(module(), table,
             fmt::format("{} of {}", family(), table.source.empty() ? "memory" : table.source));
  freeze(module());
  // Weights in the memory order of the activations; otherwise every convolution reorders them anew.
  for (auto& parameter : module().parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(at::MemoryFormat::ChannelsLast));
}

void Network::initialize_from(uint64_t seed, const std::string& start) {
  if (start != "normal") throw input_error("--start {}: expected normal for a {}", start, family());
  initialize(seed);
}

}  // namespace aha
