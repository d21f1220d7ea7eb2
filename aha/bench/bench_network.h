// Networks to be measured, with random weights: speed does not depend on them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "aha/networks/classifier.h"

namespace aha {

struct Subject {
  int size = 224;  // side of the input in pixels
  // As aha runs it, and on libtorch alone; null for an encoder.
  std::shared_ptr<Classifier> target, eager;
  // pixels (B, 3, size, size) in [0, 1] -> logits, or the last level of an encoder's features
  std::function<Tensor(const Tensor&)> forward, eager_forward;
  bool on_engine = false;      // whether `forward` runs on an engine
  int64_t packed_bytes = 0;    // of that engine's weights
  bool differentiable = true;  // in the pixels; not an encoder
};

// "vit_b_16", or with changed sizes "convnext_mini:depths=1,3,1": a known architecture. Both forms share
// their weights.
Subject make_subject(const std::string& spec, const Context& context);

// The same, with weights that learn.
struct Learner {
  int size = 224;
  std::function<Tensor(const Tensor&)> forward;                        // pixels (B, 3, size, size) -> logits
  std::function<void(const std::optional<Precision>&)> set_precision;  // nothing = eager libtorch
  std::vector<Tensor> parameters;
};
Learner make_learner(const std::string& spec);

}  // namespace aha
