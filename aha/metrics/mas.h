// Magnitude aligned scoring (Walker et al. 2024): deletion and insertion that also ask whether the map's
// values rise as the response does.
//
// Pixels are inserted into a reference (or deleted from the image) in the order of the map, `step` at a time.
// With m_i the probability of the class after i of M steps, p0 that of the image, p_ref that of the
// reference:
//
//   response   r_i = clip((m_i - p_ref) / |p0 - p_ref|, 0, 1), made monotone from its start
//   density    rho_i = share of the map's sum that was inserted (deletion: that is left) after i steps
//   penalty    e_i = |r_i - rho_i|
//   aligned    c_i = clip(r_i - e_i, 0, 1) (deletion: r_i + e_i), scaled to 0..1
//   rise, mas  areas of r and of c by the trapezoid rule
//
// An aligned curve without any range becomes the straight line, whose area is 1/2; so does a response where
// p0 equals p_ref.
#pragma once

#include <vector>

#include "aha/base/context.h"
#include "aha/networks/classifier.h"

namespace aha {

enum class MasTest { kInsertion, kDeletion };

struct MasInput {
  std::vector<double> probabilities;  // M + 1: before the first step, ..., behind the last
  std::vector<double> mass;           // M: sum of the map over the pixels of each step
  double clean = 0, reference = 0;    // p0 and p_ref
};

struct MasCurve {
  std::vector<double> response, density, penalty, aligned;  // M + 1 each
  double rise = 0, mas = 0;
};

// Input error where the map's sum is not above 0: its density is not defined.
MasCurve mas_curve(MasTest test, const MasInput& input);

// A map's pixels in its order, `step` of them at a time.
struct MasSteps {
  Tensor ranks;  // (H * W)
  int64_t step = 0;
  std::vector<double> mass;  // M
};
// map (H, W), none of it negative. step_px 0 = the width: 224 steps at 224 pixels, as published.
MasSteps mas_steps(const Tensor& map, int64_t step_px = 0);

// Asks the target M - 1 times: the ends are known.
struct MasImage {
  Tensor pixels, reference;           // (3, H, W) in [0, 1]
  int64_t wanted = 0;                 // class
  double clean = 0, reference_p = 0;  // its probability on both
};
MasInput mas_input(Classifier& target, MasTest test, const MasImage& image, const Tensor& map,
                   const Context& context, int64_t step_px = 0);

}  // namespace aha
