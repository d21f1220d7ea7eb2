// Evaluation settings as data: protocols/NAME.toml. Figures of different protocols cannot be compared, so
// every result names its protocol and carries its settings.
#pragma once

#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/metrics/sweep.h"

namespace aha {

struct Protocol {
  std::string name;
  std::string summary;
  int steps = 10;              // equal shares of the pixels
  std::string area = "auc10";  // metrics/curve.h
  std::string ties = "index";  // ranking/hard_order.h
  std::vector<std::string> references = {"black", "mean", "blur"};
};
Fields fields(Protocol& protocol);  // all but the name

// Folder: the environment's AHA_PROTOCOLS, else share/aha/protocols beside the program's bin, else protocols
// in the source tree.
std::vector<std::string> protocol_names();
Protocol protocol_named(const std::string& name);
// Unknown keys and values out of range are input errors.
Protocol protocol_from_file(const std::string& path);

SweepOptions sweep_options(const Protocol& protocol);

}  // namespace aha
