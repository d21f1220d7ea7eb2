// How the decoder of an explainer is trained.
#pragma once

#include "aha/objective/step.h"
#include "aha/train/trainer.h"

namespace aha {

struct ExplainerTrainOptions {
  ObjectiveOptions objective;
  std::string explained = "predicted";  // the class explained: predicted, or truth (the label)
  int norm_group = 4;                // pictures that share BatchNorm's statistics and a grid
  bool flip = true;                  // mirror half of the pictures
  double view_area = 1;              // a random square of at least this share of the picture, another one each epoch (random_view.h); 1 = the target's own crop
  double cutmix_share = 0;           // share of the pictures that show a rectangle of another one (data/augment.h): more pictures to be learned by heart
  double feature_dropout = 0;        // share of the encoder's channels that a picture is learned without, others each time
  bool learn_embedding = true;       // false = the class embedding stays as it began: few pictures a class would be learned by heart
  int64_t holdout = 64;              // pictures kept aside for validation, at most a fifth
  int cache_mb = 1024;               // memory for features, which random views and mixed pictures do not use; 0 = computed anew each time
  int64_t search_pictures = 16;      // held-out images that choose the learning rate of refinement at the end; 0 = refinement_lr
  double refinement_lr = 1e-4;       // of refinement, for the card, where none is searched; the paper's
  int refinement_steps = 0;          // S of refinement, for the card; 0 = training's. Refinement takes every reference in each step, so it needs fewer ks of each
  TrainOptions train;

  ExplainerTrainOptions();           // AdamW, weight decay 1e-3, one cycle up to 1e-3, no moving average
};
Fields fields(ExplainerTrainOptions& options);

}  // namespace aha
