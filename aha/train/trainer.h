// The loop that trains any network: what differs between networks is a TrainTask, everything else is here.
//
// An epoch is a seeded permutation of the examples, cut into global batches; each worker takes its
// consecutive share of every batch, so that N workers see what one would see. A step: losses, backward, one
// all-reduce of all gradients, clip, optimizer, moving average. Every `checkpoint_every` steps and after
// every epoch the whole state goes to OUT/checkpoint.safetensors; the averaged weights with the best
// validation score to OUT/best.safetensors; numbers to OUT/log.jsonl and TensorBoard. Ctrl-C saves and stops,
// also within a validation, which the resumed run then begins with; kill -9 loses the steps since the last
// checkpoint; --resume continues bit for bit. A loss or a gradient that is not finite stops the run and says
// where.
#pragma once

#include <torch/nn/module.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/tensor/tensor.h"
#include "aha/train/meters.h"
#include "aha/train/optimizer.h"
#include "aha/train/schedule.h"
#include "aha/train/worker_group.h"

namespace aha {

struct TrainOptions {
  std::string out;  // the run's folder
  int epochs = 10;
  int64_t max_steps = 0;  // a shorter run; 0 = all epochs. The schedule ends there too.
  int64_t checkpoint_every = 200;
  int64_t log_every = 20;  // steps
  int validate_every = 1;  // epochs
  bool resume = false;
  bool overwrite = false;  // begin anew where a run was, or write among files of others
  bool strict = false;     // stop at the first image that cannot be read
  int workers = 1;         // processes on this machine
  double worker_timeout_s = 600;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  double clip = 1;         // longest gradient; 0 = any
  double average = 0.999;  // memory of the moving average that is validated and kept; 0 = the trained weights
                           // themselves (d = 0)
  double max_loss = 1e4;   // a larger loss counts as divergence
};
Fields fields(TrainOptions& options);

// One worker's share of one global batch.
struct Batch {
  int64_t step = 0, epoch = 0;
  std::vector<int64_t> indices;  // of the examples
  Tensor pixels;                 // (B, 3, H, W) in [0, 1], channels last
  Tensor labels;                 // (B) int64
  Tensor second_labels,
      second_shares;  // (B) int64 and float: of images that show two classes; undefined = none does
};

struct Losses {
  Tensor total;  // scalar, what is minimized
  std::vector<std::pair<std::string, Tensor>>
      terms;  // scalars it is made of, for the log and for the message of a run that diverges
};

class TrainTask {
 public:
  virtual ~TrainTask() = default;
  virtual torch::nn::Module& network() = 0;  // its parameters that require gradients are trained
  virtual int64_t examples() const = 0;
  virtual void load(Batch& batch)
      const = 0;  // pixels and labels of batch.indices; called ahead of the loop by another thread
  virtual Losses losses(
      const Batch& batch) = 0;  // means over the batch; random numbers only from (seed, step, index)
  // With the averaged weights in the network. Every worker is called and may take its share through `group`;
  // all return the same.
  virtual Scores validate(WorkerGroup& group) = 0;
  virtual std::string description() const { return ""; }  // the run's first remark, once it may begin
  virtual std::string score() const = 0;                  // the validated number whose highest value is best
  virtual std::string remark(const Scores&) const {
    return "";
  }  // on the latest logged means, for the printed line
};

struct TrainReport {
  int64_t steps = 0, first_step = 0;  // of the whole run; where this process began
  int64_t best_step = 0;
  Scores best, last;             // validated
  double seconds = 0;            // of this process
  double images_per_second = 0;  // training only
};

// For the work beside the steps (validation, searches): throws Error(kCanceled) after a Ctrl-C. What was
// trained is saved before it begins.
void stop_if_canceled(const Context& context);

// Examples kept aside to choose the best weights, at most a fifth; the same ones whatever the run's seed, so
// that runs can be compared. `training` ascends.
struct HeldOutSplit {
  std::vector<int64_t> training, held_out;
};
HeldOutSplit held_out_split(int64_t examples, int64_t wanted);

// The order of the examples in an epoch; global batch b of the epoch is its entries [b * size, (b + 1) *
// size), the last incomplete one is left out.
std::vector<int64_t> shuffled(int64_t examples, uint64_t seed, int64_t epoch);

// Steps of the whole run: whole batches of every epoch, at most max_steps.
int64_t total_steps(const TrainOptions& options, int64_t examples, int64_t global_batch);

// Options as JSON without those that only say where and how fast (out, resume, workers, intervals): what a
// run and its resumption have to agree on.
nlohmann::json settings_that_decide(const Fields& fields);

// On return the network holds the best averaged weights. `settings` are all options that decide the result,
// kept with the run and compared when it resumes.
TrainReport train(TrainTask& task, const TrainOptions& options, int64_t global_batch,
                  const nlohmann::json& settings, WorkerGroup& group, const Context& context);

}  // namespace aha
