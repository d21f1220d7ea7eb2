// The verb behind `aha train`: trains the decoder of an explainer for a frozen target and leaves a model directory.
//
// A step: features of the frozen encoder and the class of every picture (both computed once a picture and kept as long as memory allows), maps of the decoder, the objective
// (objective/step.h), one backward. BatchNorm takes its statistics over groups of `norm-group` pictures; each group draws a grid of its own. Groups, not workers, are the unit
// of everything random, so that two workers with half of the groups each train what one would train.
// Held-out training pictures choose the best weights: Ins - Del with hard masks (rule `paper`, three references), the figure the explainer will be judged by. They choose the
// learning rate of refinement, too, which goes into the card.
#pragma once

#include "aha/base/context.h"
#include "aha/data/dataset.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/objective/step.h"
#include "aha/train/trainer.h"

namespace aha {

struct ExplainerShape {
  std::string encoder = "target";    // "target" (its own activations), or a model spec (dinov3_vitl16:FILE, a directory)
  std::vector<std::string> levels;   // taps, finest first, a level may join several with '+'; empty = four usual ones of this depth
  std::vector<int> scales;           // of the levels (explainer/dpt.h); empty = by the size of the pictures
  int channels = 0, top = 0, head = 0;  // of the decoder; 0 = by the size of the pictures
  int embedding = 0;                 // width of the class embedding; 0 = the target's own rows where they are known
  bool lens = true;                  // token times class as a channel of each level (explainer/dpt.h)
  std::string output = "none";       // activation of the map; none = unbounded, which the soft order needs to become sharp
  std::string padding = "replicate"; // zeros leave a dim rim
  std::string prior = "none";        // a map of the target's own to begin from (explainer/prior.h), for few pictures
  double prior_weight = 25;
};
Fields fields(ExplainerShape& shape);

// A fresh explainer with seeded weights. The target must outlive it where the encoder is the target.
std::unique_ptr<Explainer> make_explainer(Classifier& target, const ExplainerShape& shape, const Context& context);

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
  int64_t search_pictures = 16;      // held-out pictures that choose the learning rate of refinement at the end; 0 = none
  int refinement_steps = 0;          // S of refinement, for the card; 0 = training's. Refinement takes every reference in each step, so it needs fewer ks of each
  TrainOptions train;

  ExplainerTrainOptions();           // AdamW, weight decay 1e-3, one cycle up to 1e-3, no moving average
};
Fields fields(ExplainerTrainOptions& options);

struct ExplainerReport {
  TrainReport train;
  int64_t parameters = 0, train_images = 0, held_out_images = 0;
  double refinement_lr = 0;          // best of the searched ones; 0 = not searched
  std::string began_with;            // sha256 of the explainer the run went on from, for the card; empty = fresh weights
};

// On return the explainer holds the best weights, in eval mode. Every worker calls it with the same arguments; context.batch_size is the global batch, 0 = 8.
// `settings` are compared when a run resumes, beside the options.
ExplainerReport train_explainer(Classifier& target, Explainer& explainer, const Dataset& data, const ExplainerTrainOptions& options,
                                nlohmann::json settings, WorkerGroup& group, const Context& context);

// The model directory of a trained explainer, in options.train.out.
void save_trained(Classifier& target, Explainer& explainer, const std::string& data, const ExplainerTrainOptions& options, const ExplainerReport& report,
                  const Context& context);

}  // namespace aha
