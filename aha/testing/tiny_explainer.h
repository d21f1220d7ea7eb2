// An untrained explainer for the tiny networks of tiny_targets.h.
#pragma once

#include "aha/explainer/explainer_catalog.h"

namespace aha::checks {

// Random, of a tiny ConvNeXt's stages.
inline LoadedExplainer tiny_explainer(Classifier& target) {
  DecoderOptions options;
  options.widths = {8, 12};
  options.scales = {1, 1};
  options.classes = target.info().classes;
  options.embedding = options.channels = options.top = options.head = 4;
  LoadedExplainer loaded;
  loaded.explainer =
      std::make_unique<Explainer>(encoder_from_target(target, {"stage.0", "stage.1"}), options);
  loaded.explainer->decoder()->eval();
  loaded.card.kind = "explainer";
  loaded.card.input = target.info().input;
  return loaded;
}

}  // namespace aha::checks
