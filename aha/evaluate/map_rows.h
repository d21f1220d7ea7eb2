// From the maps of one method to stored figures: each map is ordered once and swept under every reference
// (metrics/sweep.h); what metrics measure beside the curves is asked in the same batches.
#pragma once

#include "aha/evaluate/image_batch.h"
#include "aha/evaluate/row_store.h"
#include "aha/metrics/metric.h"

namespace aha {

struct MapRowOptions {
  std::string method, explained;
  SweepOptions sweep;     // steps 0 = no curves
  std::string also = {};  // another explained class that has the same maps: its rows come for free
};

// Rows without their keys, complete when the queue has been flushed and finish() was called.
class PendingRows {
 public:
  // Asks for one row for each image of the batch, and behind them one more each for options.also. A map that
  // cannot be ordered (failed, not finite, constant) says so in its state and has no curves. Cost: 2 (steps -
  // 1) questions for each other map and reference.
  PendingRows(ScoreQueue& questions, const ImageBatch& batch, const Attribution& attribution,
              const MapRowOptions& options, const Context& context);

  // A row whose target does not answer has no figures and says so; `target` is its name.
  std::vector<Row> finish(const std::string& target);

 private:
  struct Asked {
    std::vector<size_t> rows;  // one for each class
    std::string reference;
    std::shared_ptr<const std::vector<SweepCurves>> curves;
  };
  std::vector<Row> rows_;
  std::vector<Asked> asked_;
};

// "ok", "constant", or why this map cannot be evaluated.
std::string state_of_map(const Tensor& map, const std::string& failure);

}  // namespace aha
