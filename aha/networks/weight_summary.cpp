#include "aha/networks/weight_summary.h"

#include "aha/base/error.h"
#include "aha/networks/family.h"
#include "aha/weights/read_weights.h"

namespace aha {

WeightSummary summarize_weights(const std::string& path) {
  const auto table = read_weights(path);
  WeightSummary summary;
  summary.path = path;
  for (const auto& [name, view] : table.tensors) {
    const std::string dtype(name_of(view.dtype));
    summary.tensors.push_back({name, dtype, view.shape});
    ++summary.dtypes[dtype];
    summary.values += view.numel();
  }
  try {
    const auto weights = canonical_weights(table);
    summary.family = weights.family;
    summary.source = weights.source;
    for (const auto& [name, view] : weights.table.tensors)
      if (name != "rope.periods") summary.parameters += view.numel();
    const auto* architecture = fitting_architecture(weights);
    if (!architecture) {
      summary.remark = "no known architecture has these sizes";
      return summary;
    }
    summary.architecture = architecture->name;
    std::string why;
    const auto config = config_as(*architecture, weights, why);
    summary.classes = config.at("classes");
    const int image_size = architecture->kind == "classifier" ? config.at("image_size").get<int>() : 224;
    summary.input = default_input(*architecture, weights.source, image_size);
  } catch (const Error& error) {
    summary.remark = error.what();
  }
  return summary;
}

}  // namespace aha
