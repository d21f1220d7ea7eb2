// Public models that `aha get` brings through the package registry: converted once into a model directory,
// CACHE/models/NAME, and from then on named like a bundled one.
#pragma once

#include "aha/base/context.h"
#include "aha/networks/card.h"

namespace aha {

struct PublicModel {
  std::string name, summary, license;
};
const std::vector<PublicModel>& public_models();

// CACHE/models; empty where there is no cache.
std::string fetched_models_folder();

struct FetchedModel {
  std::string directory;
  bool was_there = false;  // nothing had to be done
  ModelCard card;
};

// `from`: empty (the registry), or a path: the package's archive, or a folder with it unpacked. What comes
// from the registry must be the known archive. The directory appears whole or not at all.
FetchedModel get_public_model(const std::string& name, const std::string& from, const Context& context);

}  // namespace aha
