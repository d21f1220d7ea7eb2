// An explainer as an ONNX graph: encoder, decoder, and the target's forward pass where it is given. What
// `aha export` writes.
//
//   image   (N, 3, H, H) float32, RGB in [0, 1]      in
//   class   (N) int64; -1 = the predicted class      in (-1: with a target)
//   map     (N, H, H), higher = more important       out
//   logits  (N, C), predicted (N) int64              out, with a target
//
// The map is the plain explainer's: T = 0. Forward passes that encoder, prior and target share are written
// once. A prior that needs a backward pass (chefer) cannot be written.
#pragma once

#include "aha/explainer/explainer.h"
#include "aha/onnx/builder.h"

namespace aha {

// Empty where this explainer can be written, else what speaks against it.
std::string onnx_refusal(const DecoderOptions& decoder);

// For images of `size` x `size` pixels. Without a target there are no logits; an explainer with a prior needs
// the one it has.
void write_onnx(OnnxBuilder& g, Explainer& explainer, Classifier* target, int size);

}  // namespace aha
