#include "aha/train/meters.h"

#include "aha/tensor/torch.h"

namespace aha {

void Meters::add(const std::string& name, double value, double weight) {
  sums_[name].weighted += value * weight;
  sums_[name].weight += weight;
}

Scores Meters::means(WorkerGroup& group) const {
  Tensor flat = torch::empty({static_cast<int64_t>(2 * sums_.size())}, torch::kFloat64);
  double* at = flat.data_ptr<double>();
  for (const auto& [name, sum] : sums_) {
    *at++ = sum.weighted;
    *at++ = sum.weight;
  }
  group.sum(flat);
  at = flat.data_ptr<double>();
  Scores means;
  for (const auto& [name, sum] : sums_) {
    means[name] = at[1] > 0 ? at[0] / at[1] : 0;
    at += 2;
  }
  return means;
}

}  // namespace aha
