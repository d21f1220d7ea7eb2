// Encoders and explainers by name (catalog.h has the specs), and which explainer belongs to a target.
#pragma once

#include "aha/explainer/explainer.h"
#include "aha/networks/catalog.h"

namespace aha {

struct EncoderOptions {
  std::vector<std::string> levels;  // "block.4", "stage.2", ...; empty = the usual ones of this network
  bool normalized = true;           // apply a transformer's final LayerNorm to each level
  int input_size = 0;  // images of this side run on the fast engine; 0 = the network's own input size
};
// Any spec except TorchScript.
std::unique_ptr<Encoder> load_encoder(const std::string& spec, const EncoderOptions& options,
                                      const Context& context);

struct LoadedExplainer {
  std::unique_ptr<Explainer> explainer;
  ModelCard card;
};
// Whether the target is the one that this explainer was trained for: the same file, or the same tensors in
// another one (networks/fingerprint.h); rounded = a copy of them in 16 bits.
SameWeights weights_explained(const ModelCard& card, Classifier& target);
bool made_for(const ModelCard& card, Classifier& target);

// Frozen, in eval mode. `target` is needed where the encoder is the target's own activations; it must be the
// one that the card names. An encoder of its own is known by its sha256. It is looked for at `encoder` (a
// weight file or a spec) where that is given, else beside the card, among the model directories beside that
// folder, and in the folders of bundled models and of those that `aha get` brought.
LoadedExplainer load_explainer(const std::string& spec, Classifier* target, const Context& context,
                               const std::string& encoder = "");

// The explainer that `spec` names, or the first bundled one by name that was trained for this target, in
// whatever file its tensors are; nothing where there is neither.
std::optional<LoadedExplainer> explainer_for(const std::string& spec, Classifier& target,
                                             const Context& context, const std::string& encoder = "");

// Fills kind, architecture, network and the encoder's part of the card.
void save_explainer(const std::string& directory, Explainer& explainer, ModelCard card);

}  // namespace aha
