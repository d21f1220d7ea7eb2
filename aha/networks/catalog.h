// Every network by name: bundled models, and the five ways to say which model is meant.
//
//   NAME            a bundled model, models/NAME, or one that `aha get NAME` brought (public_models.h)
//   path/to/dir     a model directory (model.json, model.safetensors)
//   vit_b_16:FILE   a known architecture (family.h) with public weights: safetensors or .pth, anyone's key
//   names
//   onnx:FILE.onnx  an exported classifier
//   script:FILE.pt  a TorchScript classifier; its FILE alone is recognized, too
#pragma once

#include "aha/base/error.h"
#include "aha/networks/card.h"
#include "aha/networks/family.h"

namespace aha {

struct BundledModel {
  std::string name, directory;
  ModelCard card;
};
// Folder: AHA_MODELS or what ships with the program (base/shipped.h). Empty where there is none.
std::string bundled_models_folder();
std::vector<BundledModel> models_in(
    const std::string& folder);  // by name; broken directories are left out with a log line
std::vector<BundledModel> bundled_models();

// The directory that a NAME or a path means, or nothing.
std::optional<std::string> model_directory(const std::string& spec);
Error unknown_model_error(const std::string& spec);

// The network of any spec above except TorchScript, filled and frozen, on the CPU. info.classes = 0: an
// encoder.
struct LoadedNetwork {
  std::shared_ptr<Network> network;
  std::string kind;  // classifier, encoder
  ClassifierInfo info;
};
LoadedNetwork load_network(const std::string& spec);

// The three numbers R,G,B of a flag; nothing where none were given.
std::optional<std::array<double, 3>> rgb_from_flag(const std::vector<double>& values, const char* flag);

std::unique_ptr<Classifier> load_classifier(const std::string& spec, const LoadOptions& options,
                                            const Context& context);

// A frozen network on the context's device, on the fast engine of its precision where there is one.
std::unique_ptr<Classifier> classifier_from_network(std::shared_ptr<Network> network, ClassifierInfo info,
                                                    const Context& context);

// A network as a model directory of kind "classifier" unless the card says another; fills architecture and
// network.
void save_classifier(const std::string& directory, Network& network, ModelCard card);

}  // namespace aha
