// Soft top-k masks: the fused kernels beside the plain log-domain version under libtorch's autograd.
//
// One image, 16 masks, 30 iterations, forward and backward, noise included where there is any; float32 on one
// thread. Memory of a fused path is what it holds between forward and backward, by its own count; that of
// autograd is what one forward and backward adds to the resident memory at its highest.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aha/base/context.h"

namespace aha {

struct SinkhornBenchOptions {
  bool long_list = false;
  double seconds = 0.4;  // for each problem
};

struct SinkhornRow {
  int64_t K = 0;
  double tau = 1, noise = 0;
  std::string path;  // dense, low-rank
  double ms = 0, memory_mb = 0;
  double reference_ms = 0;
  std::optional<double> reference_memory_mb;
};

std::vector<SinkhornRow> bench_sinkhorn(const SinkhornBenchOptions& options, const Context& context);

nlohmann::ordered_json json_from(const SinkhornRow& row);
std::string table_from(const std::vector<SinkhornRow>& rows);

}  // namespace aha
