// The machine a measurement was made on, and what the program chose for it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/startup.h"

namespace aha {

struct Machine {
  std::string cpu;                 // "Intel(R) Xeon(R) Processor"
  int cores = 0, threads = 0;      // this process may use; the team has
  double memory_mb = 0, load = 0;  // of the machine; runnable processes over the last minute
  std::string isa, isa_why;        // "avx512", "avx512 (AMX: not in this CPU, or hidden by the hypervisor)"
  std::string kernels_f32, kernels_bf16;  // kernel set of each precision
  std::string openblas_core;              // what OpenBLAS runs, empty = none is loaded
  bool tuned = true;                      // false: AHA_TUNING=off, libraries as the system has them
  std::vector<TuningChoice> libraries;
};

Machine this_machine();
nlohmann::ordered_json json_from(const Machine& machine);
std::string text_from(const Machine& machine);

}  // namespace aha
