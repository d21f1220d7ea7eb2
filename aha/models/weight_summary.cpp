#include "aha/models/weight_summary.h"

#include "aha/base/error.h"
#include "aha/models/catalog.h"
#include "aha/weights/read_weights.h"

namespace aha {

WeightSummary summarise_weights(const std::string& path) {
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
    const auto weights = canonical_from_any(table);
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
    int image_size = 224;
    if (std::holds_alternative<VitConfig>(architecture->config)) {
      const auto config = vit_config_from_weights(weights, std::get<VitConfig>(architecture->config).heads);
      summary.classes = config.classes;
      if (architecture->kind == "classifier") image_size = config.image_size;
    } else {
      summary.classes = convnext_config_from_weights(weights).classes;
      image_size = std::get<ConvNextConfig>(architecture->config).image_size;
    }
    summary.input = default_input(*architecture, weights.source, image_size);
  } catch (const Error& error) {
    summary.remark = error.what();
  }
  return summary;
}

}  // namespace aha
