// GFLOP/s of the kernels on one thread, problem by problem, beside what the core can multiply at most.
//
// A multiplication and an addition are two operations. Where a kernel is not made of multiply-adds the
// operations are counted by its formula (kernels_section.cpp): such kernels wait for memory, and their share
// of the peak is small.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aha/base/context.h"

namespace aha {

struct KernelBenchOptions {
  bool long_list = false;  // every kernel set of this machine, every epilogue, the long list of problems
  double seconds = 0.1;    // for each figure
};

struct KernelRow {
  std::string kernel;   // "gemm", "gemm gelu+derivative", "attention back", ...
  std::string problem;  // "1576 x 768 x 3072"
  std::string what;     // where such a problem occurs
  std::string isa, set;
  double ms = 0, gflops = 0, share_of_peak = 0;
};

std::vector<KernelRow> bench_kernels(const KernelBenchOptions& options, const Context& context);

nlohmann::ordered_json json_from(const KernelRow& row);
std::string table_from(const std::vector<KernelRow>& rows);

}  // namespace aha
