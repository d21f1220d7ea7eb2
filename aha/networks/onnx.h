// Any exported classifier as a target: onnx:FILE.onnx, computed on libtorch with gradients (aha/onnx). No
// code of the file's own runs.
//
// What methods look at is found in the graph by what it computes for a synthetic image:
//   features     the last maps (C, h, w) of at least 2 x 2 that all of the answer comes from: CAM methods
//   stage.N      the last maps of each size, finest first: levels of an explainer
//   block.N.attention, block.N   of a vision transformer with a class token: a softmax over T x T scores that
//   a
//                matrix product reads, and the tokens (T, D) behind the residual additions that follow it
// The preprocessing comes from a file beside it (exported_classifier.h); the input size is the graph's own
// where it is fixed. Overrides of the user win.
#pragma once

#include "aha/networks/classifier.h"

namespace aha {

std::unique_ptr<Classifier> load_onnx_classifier(const std::string& path, const LoadOptions& options,
                                                 const Context& context);

}  // namespace aha
