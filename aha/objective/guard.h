// What the guard of refinement compares two maps of an image by: insertion minus deletion, with hard masks.
//
//   mean over references and k of f(I_ins^(k))_t - f(I_del^(k))_t
//
// The most important pixels are removed or inserted outright, at a few evenly spaced k: the images of a sweep
// (metrics/sweep.h), but fewer. Refinement follows the soft masks of random regions; this is closer to what a
// map is used and measured for. Cost: 2 kGuardPoints forward passes for each reference.
//
// docs/decisions/refinement.md has what was measured, other guards among it.
#pragma once

#include "aha/objective/objective_step.h"

namespace aha {

constexpr int kGuardPoints = 4;        // k at 1/5, 2/5, 3/5 and 4/5 of the pixels
constexpr double kGuardMargin = 0.02;  // by which a refined map must be better: smaller gains of so few
                                       // points are often none

// map (1, H, W) of images with B = 1. Its references and what they look like are the objective's.
double hard_ins_del(Classifier& target, const Tensor& map, const ObjectiveImages& images,
                    const ObjectiveOptions& options);

}  // namespace aha
