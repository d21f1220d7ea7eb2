// The card of a model directory: DIR/model.json beside DIR/model.safetensors.
//
// A key that is not listed here is an input error, so that a typo never passes silently. The weights are
// named by their sha256, which is checked when a model is loaded.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "aha/networks/classifier.h"
#include "aha/networks/fingerprint.h"

namespace aha {

struct ModelCard {
  std::string kind;          // classifier, encoder, explainer
  std::string architecture;  // vit, convnext, resnet, hiera; dpt for an explainer
  std::string summary;       // one line for `aha models`
  // Hyper-parameters, as fields() of the architecture's config lists them.
  nlohmann::json network = nlohmann::json::object();
  InputSpec input;
  std::array<double, 3> mean_color = kImageNetMeanColor;  // of a classifier's training images
  std::vector<std::string> classes;                       // names; empty for an encoder
  // Keys: data, recipe, seed, command, figures (an object of measured numbers), began_with (sha256 of the
  // weights it was trained on from), license, source.
  nlohmann::json provenance = nlohmann::json::object();
  std::string sha256;  // of model.safetensors; write_model fills it

  // Explainers only.
  struct EncoderPart {
    std::string architecture;  // "target", "dinov3_vits16", or the card's of a model directory
    std::string sha256;
    std::vector<std::string> levels;
    bool normalized = false;
  };
  struct TargetPart {
    std::string name, architecture;
    std::string sha256;                  // of the weight file it was trained with
    std::optional<Fingerprint> tensors;  // of these weights in any file; older cards have none
  };
  std::optional<EncoderPart> encoder;
  std::optional<TargetPart> target;
  double temperature = 1;                                // tau at the end of training
  nlohmann::json training = nlohmann::json::object();    // settings of the run, as the trainer wrote them
  nlohmann::json refinement = nlohmann::json::object();  // settings found best for test-time refinement
};

// Reads and checks DIR/model.json; does not touch the weights.
ModelCard read_card(const std::string& directory);

// DIR/model.safetensors; input error where its sha256 is not the card's.
TensorTable read_model_weights(const std::string& directory, const ModelCard& card);

// Both files, weights first: a directory with a card is complete.
void write_model(const std::string& directory, ModelCard card, const TensorTable& weights);

// Whether its recipe (provenance) removed regions of training images: "mask-share" above 0.
bool masked_training(const ModelCard& card);

nlohmann::ordered_json json_from_card(const ModelCard& card);
ModelCard card_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace aha
