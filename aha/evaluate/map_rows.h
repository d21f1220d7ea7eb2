// From the maps of one method to rows: each map is ordered once and swept under every reference
// (metrics/sweep.h).
#pragma once

#include "aha/evaluate/image_batch.h"
#include "aha/evaluate/row_store.h"
#include "aha/metrics/sweep.h"

namespace aha {

struct MapRowOptions {
  std::string method, explained;
  SweepOptions sweep;
};

// One row for each image of the batch, without its key. A map that cannot be ordered (failed, not finite,
// constant) says so in its state and has no curves. Cost: 2 (steps - 1) target evaluations for each other map
// and reference.
std::vector<Row> rows_of_maps(Classifier& target, const ImageBatch& batch, const Attribution& attribution,
                              const MapRowOptions& options, const Context& context);

}  // namespace aha
