// Test-time refinement: a few steps of the objective for one image and one class (paper, section 3.3).
//
// What changes is one of three:
//
//   head           the decoder, as in the paper: it is copied, the copy is trained on this image (BatchNorm
//                  frozen), one forward gives the map, the copy is thrown away
//   map            numbers that are added to the explainer's map (map_residual.h), in several moves a step:
//                  each with a share of the step's S, on a region grid and values of k of its own
//   head-then-map  the decoder in the first steps, then numbers added to the map it gives
//
// There is no noise, the temperature is that of the end of training, every reference is in each step. The
// explainer itself never changes and images never meet. The random grids and ks depend on (seed, step) alone.
// An image gets the same map alone, in any batch and with any number of threads, bit for bit. Cost a step:
// grids * references * 2 S forwards and backwards of the target.
//
// On about a quarter of the images the refined map scores below the explainer's own. The guard (guard.h)
// looks at both with hard masks at the end and keeps the better one; the paper has none.
#pragma once

#include "aha/explainer/explainer.h"
#include "aha/objective/map_residual.h"
#include "aha/objective/objective_step.h"

namespace aha {

struct RefineOptions {
  int steps = 3;                // T; 0 = the explainer's own map
  std::string form = "head";    // what changes: head, map, head-then-map
  int head_steps = 3;           // of head-then-map: steps before the map's
  MapResidualOptions residual;  // of map and head-then-map
  int moves = 1;                // of the map in a step; no more than S
  double lr = 1e-4;  // of AdamW on the decoder, the paper's. The best value depends on the decoder's size
                     // (1e-4 for 16 M parameters, 3e-3 for 0.1 M) and is in the explainer's card
  double weight_decay = 1e-3;
  double clip = 1;    // longest gradient
  int grids = 1;      // region grids per step
  bool guard = true;  // keep the better of the refined map and the explainer's own
  double budget_ms =
      0;  // stop before the step that would end later than this, however many were asked for; 0 = no limit.
          // The first step's time is estimated from a forward pass, then from the guard's.
  std::vector<int> snapshots;  // steps, fewer than T, after which the map is wanted too
  ObjectiveOptions objective;  // tau_final is the temperature; noise is not used
};

// An image whose loss or map stops being finite fails alone: the others are refined as if it were not there.
struct Refined {
  Tensor maps;  // (B, H, W); NaN everywhere for an image that failed
  std::vector<int>
      steps;  // done for each image: fewer than asked for where the budget ended or the image failed
  std::vector<double> first_step_ms;  // when the first step would end, estimated under a budget; else 0
  std::vector<int> beside;            // forward passes of the guard and of the estimate
  std::vector<char> unrefined;        // 1 where the guard kept the explainer's own map
  std::vector<double> loss;           // of each image's last step; NaN where none was done
  std::vector<std::string> failed;    // why an image failed; empty = it did not
  std::vector<Tensor> snapshots;  // one of options.snapshots each, (B, H, W): what T = that many steps gives,
                                  // bit for bit; NaN from the step on at which an image failed
  std::vector<std::vector<double>> snapshot_loss;  // [snapshot][image]: of the last step before it
  std::vector<std::vector<char>> snapshot_unrefined;
};

Refined refined_maps(Classifier& target, Explainer& explainer, const Tensor& pixels, const Tensor& classes,
                     const RefineOptions& options, const Context& context);

// Forward passes of the guard for each of the maps it looks at.
int guard_forwards(const RefineOptions& options);

// The settings of the card, on the defaults: training's objective without noise and with every reference,
// then what was found best for refinement.
RefineOptions refine_options_from_card(const nlohmann::json& training, const nlohmann::json& refinement,
                                       double temperature);
Fields fields(RefineOptions& options);  // of its own; the objective's are not listed

}  // namespace aha
