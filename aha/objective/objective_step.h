// One step of Amortized Hybrid Attribution's objective: maps in, differentiable loss out. Training and
// test-time refinement share it.
//
//   scores  a = region means of the map A on a G x G grid with a random offset        (B, K)
//   masks   m = soft top-k masks of a at S stratified values of k                     (B, S, K)
//   p_del   = f(I (1 - m) + I0 m)_t,   p_ins = f(I m + I0 (1 - m))_t                   (B, S)
//   loss    = lambda_del mean(p_del) - lambda_ins mean(p_ins) + lambda_reg mean((A - avgfilter(A))^2)
//
// What is random (grid, offset, k, references, noise) is drawn by draw_step as a pure function of (seed,
// step, group): a resumed run and any split over workers draw the same.
#pragma once

#include <map>

#include "aha/base/options.h"
#include "aha/networks/classifier.h"
#include "aha/perturb/reference.h"
#include "aha/perturb/region_grid.h"
#include "aha/ranking/soft_sort.h"

namespace aha {

struct ObjectiveOptions {
  int steps = 16;  // S: perturbed images of each direction, image and reference
  double lambda_deletion = 1, lambda_insertion = 1;
  double lambda_smoothness = 2.5e-3;
  int window_px = 3;                 // side of the averaging filter, odd
  int grid_low = 7, grid_high = 28;  // G is drawn from these, both included
  bool grid_offsets = true;
  double tau = 1, tau_final = -1;  // temperature at the first and the last step, geometric between; final -1
                                   // = tau holds for the whole run
  double noise = 0, noise_final = -1;  // scale of the Gumbel noise, linear between; final -1 = noise holds
                                       // for the whole run; the paper trains with 1
  int iterations = 30;                 // of Sinkhorn
  bool jitter = true;                  // k at a random place of each of S strata; false = in its middle
  std::vector<std::string> references = {"black", "mean", "blur"};
  std::string reference_choice =
      "one";                   // one = drawn for each image and step; all = each image with every one of them
  bool spread_ks = false;      // where all references are taken, each with S values of k of its own
  ReferenceOptions reference;  // what they look like; a mean color that is not given is the target's
};
Fields fields(ObjectiveOptions& options);

// Input error for values that do not fit each other.
void check_options(const ObjectiveOptions& options);

// At the last step, whatever the options left open.
double final_tau(const ObjectiveOptions& options);
double final_noise(const ObjectiveOptions& options);

// The random part of a step.
struct ObjectiveStep {
  RegionGrid grid;
  std::vector<int64_t>
      ks;  // (S), ascending; where they are spread (S rounds): round r has r, r + rounds, ...
  std::vector<std::vector<std::string>> references;  // [round][image]: every round perturbs all images
  SoftSortOptions sort;
  NoiseStream noise;
};

// progress in [0, 1] moves tau and noise. `group` tells apart the parts of one step that draw a grid of their
// own; `first_image` is the place of image 0 in the step's global batch, so that its reference and its noise
// do not depend on who computes it.
struct StepPlace {
  uint64_t seed = 0;
  int64_t step = 0, group = 0, first_image = 0;
  double progress = 0;
};
ObjectiveStep draw_step(const ObjectiveOptions& options, const StepPlace& place, int64_t images,
                        int64_t height, int64_t width);

struct ObjectiveImages {
  Tensor pixels;   // (B, 3, H, W) in [0, 1]
  Tensor classes;  // (B) int64
  // By name, each (B, 3, H, W): what is asked for many times is made once. Others are made when needed.
  std::map<std::string, Tensor> references = {};
};

// All references of the options, as ObjectiveImages keeps them.
std::map<std::string, Tensor> kept_references(Classifier& target, const Tensor& pixels,
                                              const ObjectiveOptions& options);

// (B, 3, H, W), kinds[b] by name.
Tensor references_of(Classifier& target, const ObjectiveImages& images, const std::vector<std::string>& kinds,
                     const ObjectiveOptions& options);

// How often a step perturbs each image: with every reference, or with the one that is drawn.
int64_t rounds_of(const ObjectiveOptions& options);

struct ObjectiveResult {
  Tensor loss;                             // scalar, differentiable in the maps
  Tensor deletion, insertion, smoothness;  // scalars without history
  double score_range =
      0;  // mean over images of max - min of the region scores: over tau, the sharpness of the masks
  double residual = 0;  // of Sinkhorn, the largest in the batch
};

// maps (B, H, W)
ObjectiveResult objective(Classifier& target, const Tensor& maps, const ObjectiveImages& images,
                          const ObjectiveStep& step, const ObjectiveOptions& options, const Context& context);

}  // namespace aha
