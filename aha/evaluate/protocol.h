// Evaluation settings as data: protocols/NAME.toml. Figures of different protocols cannot be compared, so
// every result names its protocol and carries its settings. docs/protocols.md compares them.
//
// A protocol is named NAME or NAME:key=value:key=value, as methods are: any of its settings can be changed
// for one call.
#pragma once

#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/metrics/sweep.h"
#include "aha/perturb/reference.h"

namespace aha {

struct Protocol {
  std::string name;  // as asked for
  std::string summary;
  int steps = 10;              // equal shares of the pixels
  std::string area = "auc10";  // metrics/curve.h
  std::string ties = "index";  // ranking/hard_order.h
  std::vector<std::string> references = {"black", "mean", "blur"};
  ReferenceOptions reference;  // what they look like; a mean color that is not given is the target's

  // What is measured, of which images: no stored figure depends on these.
  std::vector<std::string> metrics = {"ins-del", "neg-pos"};  // where the call names none
  // The references of what falls while important pixels go (deletion, positive), and of what stays
  // (insertion, negative); empty = all.
  std::vector<std::string> deletion_references, insertion_references;
  std::string resize = "target";  // "stretch": to the input's square without keeping the aspect
  bool correct_only = false;      // images whose label is the predicted class
  double least_probability = 0;   // of the predicted class
  int most_per_class = 0;         // images of one predicted class; 0 = any number
  int64_t most_images = 0;        // 0 = all

  bool selects() const;  // whether some images may not be evaluated (selection.h)
};
Fields fields(Protocol& protocol);  // all but the name

// Flags of `aha eval` that change a protocol; empty, 0 and -1 = as the protocol says.
struct ProtocolChanges {
  int steps = 0;
  std::string area, ties, blur;
  double blur_sigma = -1;
  int blur_kernel = -1;
  std::vector<std::string> references, deletion_references, insertion_references;
};
Fields fields(ProtocolChanges& changes);  // all but the references
Protocol changed(Protocol protocol, const ProtocolChanges& changes);

// Folder: AHA_PROTOCOLS or what ships with the program (base/shipped.h).
std::vector<std::string> protocol_names();
// From NAME or NAME:key=value.
Protocol protocol_named(const std::string& spec);
// Unknown keys and values out of range are input errors.
Protocol protocol_from_file(const std::string& path);

SweepOptions sweep_options(const Protocol& protocol, ScoreKind score = ScoreKind::kProbability);

// What stored figures depend on.
nlohmann::json json_of_rows(const Protocol& protocol);

// The references of a metric of this direction.
const std::vector<std::string>& references_of(const Protocol& protocol, bool higher_is_better);

}  // namespace aha
