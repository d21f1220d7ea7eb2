#include "aha/networks/family.h"

#include <algorithm>

#include "aha/base/error.h"

namespace aha {
namespace {

std::string text_of(const nlohmann::json& value) {
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& item : value) parts.push_back(item.dump());
  return fmt::format("{}", fmt::join(parts, ","));
}

// What differs between a known network and the weights at hand, in words; empty where they fit.
std::string difference(const NetworkFamily& family, const nlohmann::json& known,
                       const nlohmann::json& found) {
  std::vector<std::string> parts;
  for (const auto& [key, expected] : known.items()) {
    if (std::ranges::find(family.free_keys, key) != family.free_keys.end() || found.at(key) == expected)
      continue;
    std::string words = key;
    std::ranges::replace(words, '_', ' ');
    parts.push_back(fmt::format("{} {} instead of {}", words, text_of(found.at(key)), text_of(expected)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

const std::vector<NetworkFamily>& network_families() {
  static const std::vector<NetworkFamily> list = {vit_family(), convnext_family(), resnet_family(),
                                                  hiera_family()};
  return list;
}

int axis_of(const TensorTable& table, const std::string& name, size_t rank, size_t which) {
  const auto& shape = table.at(name).shape;
  if (shape.size() != rank)
    throw input_error("{}: {}: expected {} axes, found shape {}", table.source, name, rank,
                      text_from_shape(shape));
  return static_cast<int>(shape[which]);
}

const NetworkFamily& family_named(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& family : network_families()) {
    if (family.name == name) return family;
    names.push_back(family.name);
  }
  throw unknown_name_error(where + ": architecture", name, names);
}

std::vector<Architecture> architectures() {
  std::vector<Architecture> all;
  for (const std::string kind : {"classifier", "encoder"})
    for (const auto& family : network_families())
      std::ranges::copy_if(family.sizes, std::back_inserter(all),
                           [&](const Architecture& a) { return a.kind == kind; });
  return all;
}

const Architecture& architecture_named(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& family : network_families())
    for (const auto& architecture : family.sizes) {
      if (architecture.name == name) return architecture;
      names.push_back(architecture.name);
    }
  throw unknown_name_error("architecture", name, names);
}

const NetworkFamily& family_of(const Architecture& architecture) {
  const auto has = [&](const Architecture& size) { return size.name == architecture.name; };
  return *std::ranges::find_if(network_families(),
                               [&](const auto& family) { return std::ranges::any_of(family.sizes, has); });
}

CanonicalWeights canonical_weights(const TensorTable& table) {
  static const auto known = [] {
    std::vector<Dialect> all;
    for (const auto& family : network_families())
      all.insert(all.end(), family.dialects.begin(), family.dialects.end());
    return all;
  }();
  return canonical_from_any(table, known);
}

const NetworkFamily& family_of(const CanonicalWeights& weights) {
  for (const auto& family : network_families())
    if (std::ranges::any_of(family.dialects,
                            [&](const Dialect& dialect) { return dialect.family == weights.family; }))
      return family;
  return family_named(weights.family, weights.table.source);
}

nlohmann::json config_as(const Architecture& architecture, const CanonicalWeights& weights,
                         std::string& why) {
  const auto &family = family_of(architecture), &held = family_of(weights);
  if (&family != &held) {
    why = "it holds a " + held.described;
    return architecture.config;
  }
  auto found = family.config_from_weights(weights, architecture.config);
  why = difference(family, architecture.config, found);
  if (why.empty() && architecture.kind == "classifier" && found.at("classes") == 0)
    why = "it holds an encoder without a head";
  return found;
}

const Architecture* fitting_architecture(const CanonicalWeights& weights) {
  for (const auto& architecture : family_of(weights).sizes) {
    std::string why;
    const auto config = config_as(architecture, weights, why);
    if (why.empty() && (config.at("classes") > 0) == (architecture.kind == "classifier"))
      return &architecture;
  }
  return nullptr;
}

InputSpec default_input(const Architecture& architecture, const std::string& source, int image_size) {
  for (const auto& recipe : family_of(architecture).recipes) {
    const bool fits = std::string_view(architecture.name).starts_with(recipe.prefix) &&
                      (recipe.source.empty() || recipe.source == source) &&
                      (recipe.size == 0 || recipe.size == image_size);
    if (!fits) continue;
    InputSpec input;
    input.size = image_size;
    input.rule = recipe.rule;
    input.resize = recipe.resize == 0 ? image_size : recipe.resize;
    input.filter = recipe.filter;
    input.crop = recipe.crop;
    if (recipe.half) input.mean = input.std = {0.5, 0.5, 0.5};
    return input;
  }
  return {};
}

}  // namespace aha
