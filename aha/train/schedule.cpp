#include "aha/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace aha {
namespace {

constexpr double kStartShare = 1.0 / 25, kEndShare = kStartShare / 1e4;

double half_cosine(double from, double to, double position) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * position)) / 2;
}

}  // namespace

Fields fields(ScheduleOptions& o) {
  return Fields()
      .add("schedule", o.kind, "how the learning rate moves")
      .choices({"one-cycle", "constant"})
      .add("lr", o.lr, "highest learning rate")
      .range(0, 100)
      .add("warmup", o.warmup, "share of the steps in which the rate rises")
      .range(0, 0.99);
}

double learning_rate(const ScheduleOptions& o, int64_t step, int64_t total_steps) {
  const double rising = o.warmup * static_cast<double>(total_steps);
  const auto at = static_cast<double>(step);
  if (o.kind == "constant") return o.lr * std::min(1.0, (at + 1) / std::max(1.0, rising));
  if (at < rising) return half_cosine(o.lr * kStartShare, o.lr, at / rising);
  const double falling = std::max(1.0, static_cast<double>(total_steps - 1) - rising);
  return half_cosine(o.lr, o.lr * kEndShare, std::min(1.0, (at - rising) / falling));
}

}  // namespace aha
