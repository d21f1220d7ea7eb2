// All loops of Sinkhorn for the instruction set of the file that includes this. Everything is in unnamed
// namespaces and uses no library template, so that no copy leaves its translation unit.
#pragma once

#include "aha/kernels/sinkhorn/sinkhorn_dense_vector.h"
#include "aha/kernels/sinkhorn/sinkhorn_logits_vector.h"
#include "aha/kernels/sinkhorn/sinkhorn_low_rank_vector.h"

namespace aha {
namespace {

constexpr SinkhornLoops loops_of(Isa isa) {
  return {isa,
          gumbel_row,
          row_softmax,
          column_log_sums,
          build,
          sweep,
          masks,
          masks_backward,
          sweep_backward,
          first_backward,
          low_rank_rows,
          kLowRank,
          sizeof kLowRank / sizeof *kLowRank};
}

}  // namespace
}  // namespace aha
