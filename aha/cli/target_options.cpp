#include "aha/cli/target_options.h"

#include "aha/base/error.h"

namespace aha {

Fields fields(TargetOptions& o) {
  return Fields()
      .add("target", o.target,
           "the classifier: a bundled model, a model directory, ARCH:FILE, onnx:FILE.onnx or script:FILE.pt")
      .add("input-size", o.input_size, "side of the network's input in pixels; 0 = the model's own")
      .range(0, 4096)
      .add("mean", o.mean, "R,G,B subtracted from [0, 1] pixels; default: the model's own")
      .add("std", o.std, "R,G,B that the difference is divided by; default: the model's own")
      .range(1e-6, 1e6);
}

std::pair<std::string, LoadOptions> named_target(const TargetOptions& options) {
  if (options.target.empty())
    throw input_error(
        "--target: expected a bundled model, a model directory, ARCH:FILE, onnx:FILE.onnx or script:FILE.pt, "
        "found nothing");
  LoadOptions load;
  if (options.input_size > 0) load.input_size = options.input_size;
  load.mean = rgb_from_flag(options.mean, "--mean");
  load.std = rgb_from_flag(options.std, "--std");
  return {options.target, load};
}

std::unique_ptr<Classifier> load_target(const TargetOptions& options, const Context& context) {
  const auto [target, load] = named_target(options);
  return load_classifier(target, load, context);
}

}  // namespace aha
