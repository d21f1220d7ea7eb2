// Milliseconds an image of whole networks: forward, and forward + backward to the pixels, beside eager
// libtorch.
//
// Our side goes through the classifier's (or encoder's) own interface. The peer is eager libtorch
// on the same weights in the same process, one round each in turn, with the libraries set up as aha
// does it (base/startup.h); how it runs without that setting is asked of a process of its own.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aha/base/context.h"

namespace aha {

// An image each.
struct NetworkFigures {
  double forward_ms = 0;
  std::optional<double> forward_backward_ms;  // not of an encoder
  // Of one batch forward and backward at its highest, without the network's own weights: the engine's packs
  // and workspaces, libtorch's activations.
  std::optional<double> memory_mb;
  // The same of the objective's way: kMasks perturbed images of one image, forward and back to their masks.
  std::optional<double> masks_mb;
};
constexpr int64_t kMasks = 32;

struct NetworkBenchOptions {
  bool long_list = false;
  std::string network;  // only the one of this name; empty = all
  bool peer = false;
  bool eager = false;    // eager libtorch in our place
  double seconds = 1.5;  // for each network and precision
  // What eager libtorch needs where the libraries are as the system has them; empty = not asked.
  std::function<std::optional<NetworkFigures>(const std::string& network)> as_shipped;
};

struct NetworkRow {
  std::string name, architecture;
  int64_t batch = 0;
  int threads = 0;
  // "f32", "avx512 f32"; where both precisions run the same kernels they were measured once. "eager libtorch"
  // where the network does not run on the engine.
  std::string precision, kernels;
  NetworkFigures figures;
  std::optional<NetworkFigures> peer, peer_as_shipped;
};

// context.batch_size = 0: the batch of each problem. An unknown network is an input error.
std::vector<NetworkRow> bench_networks(const NetworkBenchOptions& options, const Context& context);

nlohmann::ordered_json json_from(const NetworkFigures& figures);
NetworkFigures network_figures_from_json(const nlohmann::json& row);
nlohmann::ordered_json json_from(const NetworkRow& row);
std::string table_from(const std::vector<NetworkRow>& rows);

}  // namespace aha
