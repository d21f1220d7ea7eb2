// The learning rate of a step.
//
//   one-cycle   from lr / 25 up to lr along half a cosine during the first `warmup` share of the steps, then
//   down along half a cosine to lr / 250,000
//               (Smith and Topin, "Super-convergence", 2019)
//   constant    lr after a linear warm-up
#pragma once

#include <cstdint>
#include <string>

#include "aha/base/options.h"

namespace aha {

struct ScheduleOptions {
  std::string kind = "one-cycle";
  double lr = 1e-3;     // the highest rate
  double warmup = 0.2;  // share of all steps
};
Fields fields(ScheduleOptions& options);

double learning_rate(const ScheduleOptions& options, int64_t step, int64_t total_steps);

}  // namespace aha
