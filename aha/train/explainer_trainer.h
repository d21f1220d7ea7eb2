// The verb behind `aha train`: trains the decoder of an explainer for a frozen target and leaves a model
// directory.
//
// Held-out training images choose the best weights: Ins - Del with hard masks (rule `paper`, three
// references), the figure the explainer will be evaluated by. They choose the learning rates of refinement,
// too, which go into the card: of the decoder, the paper's form, and of the map.
#pragma once

#include <optional>

#include "aha/explainer/explainer_catalog.h"
#include "aha/explainer/explainer_shape.h"
#include "aha/train/explainer_task.h"

namespace aha {

struct ExplainerRun {
  std::string target;  // any classifier that networks/catalog.h can load
  LoadOptions load;    // what the user says about it
  std::string data;    // images to learn from (data/dataset.h)
  SliceOptions slice;
  std::string from;  // a trained explainer of this target to go on from: encoder and shape are its own then,
                     // a prior is added; empty = fresh weights
  ExplainerShape shape;
  ExplainerTrainOptions train;
};
Fields fields(ExplainerRun& run);  // all but the target

// Learning rates of refinement.
struct RefinementRates {
  double head = 0, map = 0;
};

struct ExplainerReport {
  TrainReport train;
  int64_t parameters = 0, train_images = 0, held_out_images = 0;
  RefinementRates refinement;  // best of the searched ones, or as the options say
  int64_t images = 0;          // of the data set
  std::vector<UnreadableImage> unreadable;
};

// Several workers: starts them and waits for them, or is one of them. Nothing is returned where another
// process has the report.
std::optional<ExplainerReport> train_explainer(const ExplainerRun& run, const Context& context);

// The middle of it, for an explainer and images in memory. On return the explainer holds the best weights, in
// eval mode. Every worker calls it with the same arguments; context.batch_size is the global batch, 0 = 8.
// `settings` are compared when a run resumes, beside the options.
ExplainerReport train_decoder(Classifier& target, Explainer& explainer, const Dataset& data,
                              const ExplainerTrainOptions& options, nlohmann::json settings,
                              WorkerGroup& group, const Context& context);

// What a trained explainer says of itself: everything refinement needs, and how it came to be.
ModelCard explainer_card(const ClassifierInfo& target, const std::string& data,
                         const ExplainerTrainOptions& options, const ExplainerReport& report,
                         const Context& context);

}  // namespace aha
