#include "aha/networks/card.h"

#include <algorithm>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"
#include "aha/networks/preprocess.h"
#include "aha/weights/safetensors.h"

namespace aha {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

const std::vector<std::string> kKinds = {"classifier", "encoder", "explainer"};
const std::vector<std::string> kProvenanceKeys = {"data",    "recipe",     "seed",    "command",
                                                  "figures", "began_with", "license", "source"};

json object_at(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) return json::object();
  if (!found->is_object())
    throw input_error("{}: {}: expected an object, found {}", where, key, printable(found->dump()));
  return *found;
}

std::string inside(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

}  // namespace

bool masked_training(const ModelCard& card) {
  if (!card.provenance.contains("recipe") || !card.provenance["recipe"].is_string()) return false;
  const json recipe = json::parse(card.provenance["recipe"].get<std::string>(), nullptr, false);
  return recipe.is_object() && recipe.contains("mask-share") && recipe["mask-share"].is_number() &&
         recipe["mask-share"].get<double>() > 0;
}

ModelCard card_from_json(const json& j, const std::string& where) {
  std::vector<std::string> keys = {"kind",  "architecture", "summary",    "network",
                                   "input", "classes",      "provenance", "sha256"};
  ModelCard card;
  if (!j.is_object()) throw input_error("{}: expected a JSON object, found {}", where, printable(j.dump()));
  card.kind = member<std::string>(j, "kind", where);
  if (std::find(kKinds.begin(), kKinds.end(), card.kind) == kKinds.end())
    throw unknown_name_error(where + ": kind", card.kind, kKinds);
  if (card.kind == "classifier") keys.push_back("mean_color");
  if (card.kind == "explainer")
    keys.insert(keys.end(), {"encoder", "target", "temperature", "training", "refinement"});
  check_json_keys(j, keys, where);

  card.architecture = member<std::string>(j, "architecture", where);
  card.sha256 = member<std::string>(j, "sha256", where);
  card.summary = member_or<std::string>(j, "summary", "", where);
  card.network = object_at(j, "network", where);
  card.input = input_from_card_json(member(j, "input", where), where + ": input");
  if (j.contains("mean_color")) card.mean_color = color_from_json(j["mean_color"], where + ": mean_color");
  if (j.contains("classes")) card.classes = class_names_from_json(j["classes"], where + ": classes");
  card.provenance = object_at(j, "provenance", where);
  check_json_keys(card.provenance, kProvenanceKeys, where + ": provenance");
  if (card.kind != "explainer") return card;

  const auto encoder = object_at(j, "encoder", where);
  check_json_keys(encoder, {"architecture", "model", "sha256", "levels", "normalized"}, where + ": encoder");
  card.encoder = ModelCard::EncoderPart{};
  // Older cards have the spec that was typed, ARCHITECTURE:FILE; the file is known by its sha256 now.
  const std::string typed =
      member<std::string>(encoder, encoder.contains("model") ? "model" : "architecture", where + ": encoder");
  card.encoder->architecture = typed.substr(0, typed.find(':'));
  card.encoder->sha256 = member<std::string>(encoder, "sha256", where + ": encoder");
  card.encoder->levels =
      texts_from_json(member(encoder, "levels", where + ": encoder"), where + ": encoder.levels");
  card.encoder->normalized = encoder.value("normalized", json(false)) == json(true);
  const auto target = object_at(j, "target", where);
  check_json_keys(target, {"name", "architecture", "sha256", "tensors"}, where + ": target");
  card.target = ModelCard::TargetPart{member<std::string>(target, "name", where + ": target"),
                                      member<std::string>(target, "architecture", where + ": target"),
                                      member<std::string>(target, "sha256", where + ": target"),
                                      {}};
  if (target.contains("tensors"))
    card.target->tensors = fingerprint_from_json(target["tensors"], where + ": target.tensors");
  card.temperature = member_or(j, "temperature", card.temperature, where);
  if (!(card.temperature > 0))
    throw input_error("{}: temperature: expected a number above 0, found {}", where, card.temperature);
  card.training = object_at(j, "training", where);
  card.refinement = object_at(j, "refinement", where);
  return card;
}

ordered_json json_from_card(const ModelCard& card) {
  ordered_json j;
  j["kind"] = card.kind;
  j["architecture"] = card.architecture;
  if (!card.summary.empty()) j["summary"] = card.summary;
  j["network"] = card.network;
  j["input"] = card_json_from_input(card.input);
  if (card.kind == "classifier") j["mean_color"] = card.mean_color;
  if (card.classes == imagenet_class_names())
    j["classes"] = "imagenet1k";
  else if (!card.classes.empty())
    j["classes"] = card.classes;
  if (card.encoder)
    j["encoder"] = {{"architecture", card.encoder->architecture},
                    {"sha256", card.encoder->sha256},
                    {"levels", card.encoder->levels},
                    {"normalized", card.encoder->normalized}};
  if (card.target)
    j["target"] = {{"name", card.target->name},
                   {"architecture", card.target->architecture},
                   {"sha256", card.target->sha256}};
  if (card.target && card.target->tensors) j["target"]["tensors"] = json_from(*card.target->tensors);
  if (card.kind == "explainer") {
    j["temperature"] = card.temperature;
    j["training"] = card.training;
    j["refinement"] = card.refinement;
  }
  j["provenance"] = card.provenance;
  j["sha256"] = card.sha256;
  return j;
}

ModelCard read_card(const std::string& directory) {
  const auto path = inside(directory, "model.json");
  return card_from_json(read_json(path), path);
}

TensorTable read_model_weights(const std::string& directory, const ModelCard& card) {
  const auto path = inside(directory, "model.safetensors");
  const auto found = sha256_of_file(path);
  if (found != card.sha256)
    throw input_error("{}: expected sha256 {} as the card says, found {}", path, printable(card.sha256),
                      found);
  return read_safetensors(path);
}

void write_model(const std::string& directory, ModelCard card, const TensorTable& weights) {
  make_directories(directory);
  const auto path = inside(directory, "model.safetensors");
  write_safetensors(path, weights);
  card.sha256 = sha256_of_file(path);
  const auto written = json_from_card(card);
  card_from_json(written, "model card");  // what is written can be read
  write_file_atomically(inside(directory, "model.json"), written.dump(2) + "\n");
}

}  // namespace aha
