// Every network by name: known architectures, bundled models, and the four ways to say which model is meant.
//
//   NAME            a bundled model, models/NAME
//   path/to/dir     a model directory (model.json, model.safetensors)
//   vit_b_16:FILE   a known architecture with public weights: safetensors or .pth, anyone's key names
//   script:FILE.pt  a TorchScript classifier
#pragma once

#include <variant>

#include "aha/models/card.h"
#include "aha/models/convnext.h"
#include "aha/models/explainer.h"
#include "aha/models/vit.h"

namespace aha {

struct Architecture {
  std::string name;  // "vit_b_16"
  std::string kind;  // classifier, encoder
  std::string summary;
  std::variant<VitConfig, ConvNextConfig>
      config;  // sizes; eps and position rule come with the weights' source
};
const std::vector<Architecture>& architectures();
const Architecture& architecture_named(const std::string& name);

// Which known architecture these weights are; null where none fits. Number of classes and input size are
// free.
const Architecture* fitting_architecture(const CanonicalWeights& weights);

// The evaluation recipe of public weights of this architecture from this source ("timm", "torchvision",
// "huggingface", ...).
InputSpec default_input(const Architecture& architecture, const std::string& source, int image_size);

struct BundledModel {
  std::string name, directory;
  ModelCard card;
};
// Folder: AHA_MODELS or what ships with the program (base/shipped.h). Empty where there is none.
std::string bundled_models_folder();
std::vector<BundledModel> bundled_models();  // by name; broken directories are left out with a log line

std::unique_ptr<Classifier> load_classifier(const std::string& spec, const LoadOptions& options,
                                            const Context& context);

// A frozen network as a classifier on the context's device, on the fast engine of its precision where there
// is one.
std::unique_ptr<Classifier> classifier_from_network(Vit network, ClassifierInfo info, const Context& context);
std::unique_ptr<Classifier> classifier_from_network(ConvNext network, ClassifierInfo info,
                                                    const Context& context);

struct EncoderOptions {
  std::vector<std::string> levels;  // "block.4", "stage.2", ...; empty = the usual ones of this depth
  bool normalized = true;           // apply a transformer's final LayerNorm to each level
};
// Any spec above except TorchScript.
std::unique_ptr<Encoder> load_encoder(const std::string& spec, const EncoderOptions& options,
                                      const Context& context);

struct LoadedExplainer {
  std::unique_ptr<Explainer> explainer;
  ModelCard card;
};
// Frozen, in eval mode. `target` is needed where the encoder is the target's own activations; its sha256 must
// then be the card's.
LoadedExplainer load_explainer(const std::string& spec, Classifier* target, const Context& context);

// Fills kind, architecture, network and the encoder's part of the card.
void save_explainer(const std::string& directory, Explainer& explainer, ModelCard card);

// A network as a model directory of kind "classifier"; fills kind, architecture and network.
void save_classifier(const std::string& directory, Vit& network, ModelCard card);
void save_classifier(const std::string& directory, ConvNext& network, ModelCard card);

}  // namespace aha
