// What the objective costs: a training step, test-time refinement of one image, and the evaluating of one
// map.
//
// An explainer with random weights looks at the target's own activations; its decoder is the usual one of
// this image size. Training: features, maps, soft masks, 2 S perturbed images per image through the target
// and back, one update; one reference, middle of each stratum of k, no noise. The peer is the same step with
// the target on eager libtorch and Sinkhorn by autograd in the log domain; bench/peers/train_step.py is the
// same step as a PyTorch program. Judging: a sweep (metrics/sweep.h) with one reference.
// For refinement and evaluating the peer differs in its target alone.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aha/base/context.h"

namespace aha {

struct ObjectiveBenchOptions {
  bool long_list = false, peer = false;
  double seconds = 1;  // for each problem
};

// Parts of the fastest step, in milliseconds of the whole batch.
struct TrainStepTimes {
  double features_ms = 0, decoder_forward_ms = 0, soft_sort_ms = 0, target_ms = 0, backward_and_update_ms = 0,
         step_ms = 0;
};

struct TrainRow {
  std::string name;
  int64_t batch = 0, steps = 0, grid = 0;
  int threads = 0;
  TrainStepTimes times;
  std::optional<TrainStepTimes> peer;
};

struct RefineRow {
  std::string name;
  int64_t refine = 0, steps = 0, grid = 0;  // T, S, G
  int64_t batch = 1;                        // images; more than one without refinement
  int threads = 0;
  double ms = 0;         // an image, features included
  double target_ms = 0;  // the target's own forward of the same batch, an image
  std::optional<double> peer_ms;
};

struct EvalRow {
  std::string name;
  int64_t batch = 0, steps = 0;
  int threads = 0;
  double ms = 0;  // an image: 2 (steps - 1) evaluations of the target
  std::optional<double> peer_ms;
};

// context.batch_size = 0: the batch of each problem.
std::vector<TrainRow> bench_train(const ObjectiveBenchOptions& options, const Context& context);
std::vector<RefineRow> bench_refine(const ObjectiveBenchOptions& options, const Context& context);
std::vector<EvalRow> bench_eval(const ObjectiveBenchOptions& options, const Context& context);

nlohmann::ordered_json json_from(const TrainRow& row);
nlohmann::ordered_json json_from(const RefineRow& row);
nlohmann::ordered_json json_from(const EvalRow& row);
std::string table_from(const std::vector<TrainRow>& rows);
std::string table_from(const std::vector<RefineRow>& rows);
std::string table_from(const std::vector<EvalRow>& rows);

}  // namespace aha
