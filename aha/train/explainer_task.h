// What a training run of an explainer does with a batch and with its held-out images.
//
// A step: features of the frozen encoder and the explained class of every image (feature_cache.h), maps of
// the decoder, the objective (objective/objective_step.h). BatchNorm takes its statistics over groups of
// `norm-group` images; each group draws a grid of its own. Groups, not workers, are the unit of everything
// random, so that two workers with half of the groups each train what one would train.
//
// The log gets the terms of the loss, the share of each (its weighted size over the sum of all weighted
// sizes), the range of the region scores and Sinkhorn's residual.
#pragma once

#include "aha/data/dataset.h"
#include "aha/objective/refine.h"
#include "aha/train/feature_cache.h"
#include "aha/train/readable_images.h"
#include "aha/train/running_statistics.h"
#include "aha/train/trainer.h"

namespace aha {

struct ExplainerTrainOptions {
  ObjectiveOptions objective;
  std::string explained = "predicted";  // the class explained: predicted, or truth (the label)
  int norm_group = 4;                   // images that share BatchNorm's statistics and a grid
  bool flip = true;                     // mirror half of the images
  double view_area = 1;     // a random square of at least this share of the image, another one each epoch
                            // (random_view.h); 1 = the target's own crop
  double cutmix_share = 0;  // share of the images that show a rectangle of another one (data/augment.h): more
                            // images to be overfitted
  double feature_dropout =
      0;  // share of the encoder's channels that an image is learned without, others each time
  bool learn_embedding =
      true;  // false = the class embedding stays as it began: few images per class would be overfitted
  int64_t holdout = 64;  // images kept aside for validation, at most a fifth
  int cache_mb = 1024;   // memory for features, which random views and mixed images do not use; 0 = computed
                         // anew each time
  bool search = true;    // choose the learning rates of refinement at the end; false = as given below
  int64_t search_images =
      16;  // held-out images that choose the learning rates of refinement at the end; 0 = as given below
  std::string refinement_form = "head";  // of refinement, for the card (objective/refine.h)
  int refinement_moves = 2;              // of the map in a step, for the card
  double refinement_lr =
      1e-4;  // of refinement of the head, for the card, where none is searched; the paper's
  double refinement_map_lr = 2;  // the same of the map
  bool refinement_guard = true;  // of refinement, for the card; the paper has none
  int refinement_steps = 0;      // S of refinement, for the card; 0 = training's. Refinement takes every
                                 // reference in each step, so it needs fewer ks of each
  TrainOptions train;

  ExplainerTrainOptions();  // AdamW, weight decay 1e-3, one cycle up to 1e-3, no moving average
};
Fields fields(ExplainerTrainOptions& options);

class ExplainerTask : public TrainTask {
 public:
  // Everything given outlives the task.
  ExplainerTask(Classifier& target, Explainer& explainer, const Dataset& data,
                const ExplainerTrainOptions& options, int64_t global_batch, WorkerGroup& group,
                const Context& context);

  torch::nn::Module& network() override { return *explainer_.decoder(); }
  int64_t examples() const override { return training_.size(); }
  int64_t held_out() const { return held_out_.size(); }
  std::map<int64_t, std::string> failures() const;  // examples that could not be read so far
  std::string score() const override { return "ins-del"; }
  std::string description() const override;
  std::string remark(const Scores& means) const override;
  void load(Batch& batch) const override;
  Losses losses(const Batch& batch) override;
  Scores validate(WorkerGroup& group) override;  // at T = 0

  // Deletion, insertion and Ins-Del of the first `count` held-out images, hard masks and rule `paper`; each
  // worker takes its share of them and says after() each. NaN where a refinement fails.
  Scores held_out_scores(const RefineOptions& refinement, int64_t count, WorkerGroup& group,
                         const std::function<void()>& after = {});

 private:
  double progress(int64_t step) const {
    return total_steps_ > 1 ? static_cast<double>(step) / static_cast<double>(total_steps_ - 1) : 1;
  }
  bool flipped(int64_t epoch, int64_t index) const;
  struct View {
    Tensor pixels;  // (3, H, W)
    int label = -1;
  };
  View view_of(int64_t index, int64_t epoch) const;
  View mixed_view_of(int64_t index, int64_t epoch) const;
  void drop_channels(Features& features, int64_t step, int64_t place) const;

  Classifier& target_;
  Explainer& explainer_;
  const Dataset& data_;
  const ExplainerTrainOptions& options_;
  WorkerGroup& group_;
  const Context& context_;
  ReferenceOptions reference_;
  ReadableImages training_, held_out_;
  int64_t total_steps_;
  FeatureCache features_;
  RunningStatistics statistics_;
};

}  // namespace aha
