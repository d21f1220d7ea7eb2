// What is in a weight file: which network it fits, whose names it uses, how large it is, what input it
// expects. The substance of `aha inspect FILE`.
#pragma once

#include <optional>

#include "aha/networks/classifier.h"

namespace aha {

struct WeightSummary {
  struct Item {
    std::string name, dtype;
    std::vector<int64_t> shape;
  };
  std::string path;
  std::string family, source;  // as canonical_from_any says; empty where no network was recognized
  std::string architecture;    // the known architecture that fits, empty = none
  std::string remark;          // why nothing was recognized
  int64_t values = 0;          // of all tensors in the file
  int64_t parameters = 0;      // of the network: what is left after renaming, without buffers
  int classes = 0;
  std::map<std::string, int64_t> dtypes;  // type -> number of tensors
  std::optional<InputSpec> input;         // the usual evaluation recipe
  std::vector<Item> tensors;              // as the file names them
};

// Input error only for a file that cannot be read; an unknown network is a remark.
WeightSummary summarize_weights(const std::string& path);

}  // namespace aha
