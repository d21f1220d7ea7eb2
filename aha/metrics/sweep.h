// Removing an image's pixels in the order of a map, and asking the target after each share.
//
// Two directions share one order: the most important pixels first (deletion, positive perturbation), the
// least important first (insertion seen from its end, negative perturbation: an image with q % inserted is
// the image whose other 100 - q % were removed). One sweep therefore yields deletion, insertion, positive
// and negative together. The clean and the fully replaced image belong to every sweep of an image,
// whatever the method: they are asked once and given to it.
//
// Cost: 2 (steps - 1) target evaluations an image, map and reference. Probabilities are double.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/metrics/curve.h"
#include "aha/metrics/score_queue.h"
#include "aha/ranking/hard_order.h"

namespace aha {

// How many elements come before each one: the inverse of an order, (N) int32 on the CPU.
Tensor ranks_of(const Tensor& order);

// The image whose pixels of rank first..last-1 show the reference; the others are bit-exact. pixels and
// reference (3, H, W) contiguous float32 on the CPU, ranks (H * W) int32.
ScoreQueue::Write with_ranks_replaced(Tensor pixels, Tensor reference, Tensor ranks, int64_t first,
                                      int64_t last);

struct SweepOptions {
  int steps = 10;  // equal shares of the pixels
  AreaRule rule = AreaRule::kAuc10;
  TieRule ties = TieRule::kIndex;  // for whoever makes the order
  ScoreKind score = ScoreKind::kProbability;
};

// One image, one map, one reference. Point i has i shares removed.
struct SweepCurves {
  std::vector<double> top, bottom;  // score of the class, most / least important pixels removed first
  std::vector<double> top_hits, bottom_hits;  // 1 where the class is the most probable one
};

// Of one image: pixels and reference (3, H, W), order (H * W) as hard_order() gives it, the logits (C) of the
// image and of its reference, and the classes whose scores are wanted.
struct SweepImage {
  Tensor pixels, reference, order, clean, replaced;
  std::vector<int64_t> classes;
};

// Asks for everything; the curves, one for each class, are there when the queue has been flushed.
std::shared_ptr<const std::vector<SweepCurves>> ask_sweep(ScoreQueue& questions, const SweepImage& image,
                                                          const SweepOptions& options);

struct SweepEnds {
  Tensor clean, replaced;  // (B, C) logits, double
};

// pixels and reference (B, 3, H, W) in [0, 1], order (B, H * W), classes (B).
std::vector<SweepCurves> sweep(Classifier& target, const Tensor& pixels, const Tensor& reference,
                               const Tensor& order, const Tensor& classes, const SweepEnds& ends,
                               const SweepOptions& options, const Context& context);

}  // namespace aha
