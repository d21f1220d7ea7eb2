// From logits to the matrix exp(L) in a gauge: its rows' softmax, its columns' sums in logarithms, and the
// matrix itself.
#pragma once

#include <math.h>
#include <string.h>

#include "aha/kernels/sinkhorn/gumbel_vector.h"

namespace aha {
namespace {

void logits_of_row(const SinkhornLogits& logits, int32_t i) {
  const double slope = logits.slope[i];
  double* x = logits.x;
  if (logits.noise > 0) {
    gumbel_row(logits.seed, logits.stream, logits.K, i, logits.gumbel);
    for (int32_t j = 0; j < logits.ld; ++j)
      x[j] = slope * logits.position[j] + logits.column[j] + logits.noise * logits.gumbel[j];
  } else {
    for (int32_t j = 0; j < logits.ld; ++j) x[j] = slope * logits.position[j] + logits.column[j];
  }
}

double largest(const double* x, int32_t ld) {
  DoubleVec most = *reinterpret_cast<const DoubleVec*>(x);
  constexpr int lanes = sizeof(Vec) / 8;
  for (int32_t j = lanes; j < ld; j += lanes) {
    const DoubleVec y = *reinterpret_cast<const DoubleVec*>(x + j);
    most = y > most ? y : most;
  }
  double result = most[0];
  for (int l = 1; l < lanes; ++l) result = most[l] > result ? most[l] : result;
  return result;
}

void row_softmax(const SinkhornLogits& logits, float* kernel, double* log_row, float* row_mean,
                 float* column_sum) {
  const int32_t ld = logits.ld;
  memset(column_sum, 0, ld * sizeof(float));
  for (int32_t i = 0; i < logits.K; ++i) {
    float* row = kernel + static_cast<int64_t>(i) * ld;
    logits_of_row(logits, i);
    const double most = largest(logits.x, ld);
    for (int32_t j = 0; j < ld; ++j) row[j] = static_cast<float>(logits.x[j] - most);
    Vec total{}, total_p{};
    for (int32_t j = 0; j < ld; j += kLanes) {
      const Vec e = exp_of(load(row + j));
      store(row + j, e);
      total += e;
      total_p += e * load(logits.position32 + j);
    }
    const float row_sum = reduce_add(total);
    row_mean[i] = reduce_add(total_p) / row_sum;
    log_row[i] = most + log(static_cast<double>(row_sum));
    const Vec scale = splat(1 / row_sum);
    for (int32_t j = 0; j < ld; j += kLanes) {
      const Vec e = load(row + j) * scale;
      store(row + j, e);
      store(column_sum + j, load(column_sum + j) + e);
    }
  }
}

void column_log_sums(const SinkhornLogits& logits, const double* log_row, double* most, double* log_column) {
  const int32_t ld = logits.ld;
  for (int32_t j = 0; j < ld; ++j) most[j] = -1e301;
  for (int32_t i = 0; i < logits.K; ++i) {
    logits_of_row(logits, i);
    for (int32_t j = 0; j < ld; ++j) {
      const double x = logits.x[j] - log_row[i];
      most[j] = x > most[j] ? x : most[j];
    }
  }
  memset(log_column, 0, ld * sizeof(double));
  for (int32_t i = 0; i < logits.K; ++i) {
    logits_of_row(logits, i);
    for (int32_t j = 0; j < ld; j += kLanes) {
      alignas(64) float e[kLanes];
      for (int l = 0; l < kLanes; ++l) e[l] = static_cast<float>(logits.x[j + l] - log_row[i] - most[j + l]);
      store(e, exp_of(load(e)));
      for (int l = 0; l < kLanes; ++l) log_column[j + l] += e[l];
    }
  }
  for (int32_t j = 0; j < ld; ++j) log_column[j] = j < logits.K ? most[j] + log(log_column[j]) : 0;
}

void build(const SinkhornLogits& logits, const double* log_row, const double* log_column, float* kernel) {
  const int32_t ld = logits.ld;
  for (int32_t i = 0; i < logits.K; ++i) {
    float* row = kernel + static_cast<int64_t>(i) * ld;
    logits_of_row(logits, i);
    for (int32_t j = 0; j < ld; ++j) row[j] = static_cast<float>(logits.x[j] - log_row[i] - log_column[j]);
    for (int32_t j = 0; j < ld; j += kLanes) store(row + j, exp_of(load(row + j)));
  }
}

}  // namespace
}  // namespace aha
