#include "aha/train/explainer_options.h"

namespace aha {

ExplainerTrainOptions::ExplainerTrainOptions() {
  train.epochs = 1;
  train.average = 0;
  train.optimiser.weight_decay = 1e-3;
  train.schedule.lr = 1e-3;
  train.schedule.warmup = 0.1;
}

Fields fields(ExplainerTrainOptions& o) {
  Fields list;
  list.add("class", o.explained, "the class explained").choices({"predicted", "truth"})
      .add("norm-group", o.norm_group, "pictures that share BatchNorm's statistics and a grid").range(1, 4096)
      .add("flip", o.flip, "mirror half of the pictures")
      .add("view-area", o.view_area, "learn from random squares of at least this share of a picture; 1 = from the picture as the target sees it").range(0.01, 1)
      .add("cutmix-share", o.cutmix_share, "share of the pictures that show a rectangle of another one").range(0, 1)
      .add("feature-dropout", o.feature_dropout, "learn without this share of the encoder's channels, others each time").range(0, 0.95)
      .add("learn-embedding", o.learn_embedding, "the class embedding learns; without, it stays as it began, for few pictures a class")
      .add("holdout", o.holdout, "pictures kept aside for validation; at most a fifth").range(1, 1e9)
      .add("feature-cache", o.cache_mb, "megabytes for features of pictures; 0 = none").range(0, 1e7)
      .add("search-pictures", o.search_pictures, "held-out pictures that choose the learning rate of refinement at the end; 0 = take refinement-lr").range(0, 1e9)
      .add("refinement-lr", o.refinement_lr, "learning rate of refinement for the card where none is searched; the paper has 1e-4").range(0, 10)
      .add("refinement-perturbation-steps", o.refinement_steps, "S of refinement, for the card; 0 = training's").range(0, 4096);
  list.nest("", fields(o.objective));
  list.nest("", fields(o.train));
  return list;
}

}  // namespace aha
