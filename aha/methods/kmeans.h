// k-means by Lloyd's iterations, as public TIS code has it: the first centroids are rows drawn with
// replacement; an empty cluster's centroid becomes zero; ends when the centroids' squared shifts sum to
// `tolerance` or less.
//
// The nearest centroid of x is the one with the largest x . c - |c|^2 / 2: one GEMM. A row whose centroid did
// not move is compared with the moved ones alone; what it was compared with before cannot win now. The same
// bits for any number of threads.
#pragma once

#include "aha/base/context.h"
#include "aha/base/rng.h"
#include "aha/tensor/tensor.h"

namespace aha {

struct KMeansOptions {
  int64_t clusters = 1024;
  int iterations = 100;  // at most
  double tolerance = 1e-4;
};

struct KMeans {
  Tensor centroids;    // (clusters, D) float32
  int iterations = 0;  // done
};

// rows (N, D) float32 on the CPU. Memory beside rows and centroids: 16 MB, and at
// most a copy of the rows.
KMeans k_means(const Tensor& rows, const KMeansOptions& options, Rng& rng, const Context& context);

// The obvious loops in float64.
KMeans k_means_plain(const Tensor& rows, const KMeansOptions& options, Rng& rng);

}  // namespace aha
