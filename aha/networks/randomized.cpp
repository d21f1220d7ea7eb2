#include "aha/networks/randomized.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/networks/catalog.h"
#include "aha/networks/network_classifier.h"
#include "aha/nn/module_state.h"

namespace aha {
namespace {

// "blocks.3" of blocks.3.attn.qkv.weight, "stages.1.blocks.2" and "stages.1.downsample" of a ConvNeXt,
// "layer2.0" of a ResNet, "" of what is in no block.
std::string block_of(const std::string& name) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    parts.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto begins = [&](std::string_view with) { return parts.size() > 2 && parts[0].starts_with(with); };
  if (begins("stages"))
    return fmt::format("{}.{}.{}{}", parts[0], parts[1], parts[2],
                       parts[2] == "blocks" ? "." + parts[3] : "");
  return begins("blocks") || begins("layer") ? fmt::format("{}.{}", parts[0], parts[1]) : "";
}

// Names of a group's tensors, in the order of the forward pass.
std::vector<std::vector<std::string>> groups_of(torch::nn::Module& network) {
  std::vector<std::vector<std::string>> groups(1);
  std::vector<std::string> behind;  // no block, but after one: the head
  std::string last;
  const auto place = [&](const std::string& name) {
    const std::string block = block_of(name);
    if (block.empty()) {
      (groups.size() == 1 ? groups[0] : behind).push_back(name);
      return;
    }
    if (block != last) groups.emplace_back();
    last = block;
    groups.back().push_back(name);
  };
  for (const auto& item : network.named_parameters()) place(item.key());
  groups.push_back(behind);
  // Buffers of a block (running statistics) belong to it.
  for (const auto& item : network.named_buffers())
    for (auto& group : groups)
      if (!group.empty() && !block_of(item.key()).empty() && block_of(group[0]) == block_of(item.key()))
        group.push_back(item.key());
  std::erase_if(groups, [](const auto& group) { return group.empty(); });
  return groups;
}

NetworkClassifier* network_of(Classifier& target) {
  return dynamic_cast<NetworkClassifier*>(&target);
}

}  // namespace

int weight_groups(Classifier& target) {
  auto* ours = network_of(target);
  return ours ? static_cast<int>(groups_of(ours->shared_network()->module()).size()) : 0;
}

std::unique_ptr<Classifier> randomized(Classifier& target, int groups, uint64_t seed,
                                       const Context& context) {
  auto* ours = network_of(target);
  if (!ours)
    throw input_error("{}: expected a network whose weights can be randomized, found a black box",
                      target.info().name);
  Network& original = *ours->shared_network();
  const auto all = groups_of(original.module());
  if (groups < 1 || groups > std::ssize(all))
    throw input_error("{}: expected 1..{} groups of weights to randomize, found {}", target.info().name,
                      all.size(), groups);
  auto network =
      family_named(original.family(), target.info().name).make(original.config_json(), target.info().name);
  network->initialize(seed);
  TensorTable table = table_from_state(original.module());
  const TensorTable fresh = table_from_state(network->module());
  for (size_t g = all.size() - static_cast<size_t>(groups); g < all.size(); ++g)
    for (const auto& name : all[g]) table.tensors[name] = fresh.at(name);
  auto made =
      family_named(original.family(), target.info().name).make(original.config_json(), target.info().name);
  made->load_weights(table);
  ClassifierInfo info = target.info();
  info.name = fmt::format("{} with {} of {} groups of weights random", info.name, groups, all.size());
  info.sha256.clear();
  return classifier_from_network(std::move(made), std::move(info), context);
}

}  // namespace aha
