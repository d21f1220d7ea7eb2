// The parts of Transformer Input Sampling (Englebert et al. 2023), apart from the method so that they can be
// tested.
#pragma once

#include <span>

#include "aha/tensor/tensor.h"

namespace aha {

// The floor(ratio n) patches with the largest entries of each centroid, at least one, ascending: centroids
// (K, n) float32 -> (K, kept) int64. Of equal entries those that libtorch's topk takes, as the public code
// does: the zero centroid of an empty cluster, about one in six, names the same patches each time and weighs
// on the map.
Tensor kept_patches(const Tensor& centroids, double ratio);

// The mean score of the subsets that a patch was in, by groups of subsets (rank_error.h).
class PatchMeans {
 public:
  explicit PatchMeans(int64_t patches);
  void add(double score, std::span<const int64_t> patches, double times = 1);
  int64_t subsets() const { return subsets_; }
  Tensor map() const;  // (n) float32; 0 for a patch that was in none
  double rank_error() const;

 private:
  int64_t subsets_ = 0;
  Tensor sums_, weights_;  // (G, n) float64
};

}  // namespace aha
