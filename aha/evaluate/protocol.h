// Evaluation settings as data: protocols/NAME.toml. Figures of different protocols cannot be compared, so
// every result names its protocol and carries its settings.
#pragma once

#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/metrics/sweep.h"
#include "aha/perturb/reference.h"

namespace aha {

struct Protocol {
  std::string name;
  std::string summary;
  int steps = 10;              // equal shares of the pixels
  std::string area = "auc10";  // metrics/curve.h
  std::string ties = "index";  // ranking/hard_order.h
  std::vector<std::string> references = {"black", "mean", "blur"};
  ReferenceOptions reference;  // what they look like; a mean color that is not given is the target's
};
Fields fields(Protocol& protocol);  // all but the name

// Folder: AHA_PROTOCOLS or what ships with the program (base/shipped.h).
std::vector<std::string> protocol_names();
Protocol protocol_named(const std::string& name);
// Unknown keys and values out of range are input errors.
Protocol protocol_from_file(const std::string& path);

SweepOptions sweep_options(const Protocol& protocol, ScoreKind score = ScoreKind::kProbability);

}  // namespace aha
