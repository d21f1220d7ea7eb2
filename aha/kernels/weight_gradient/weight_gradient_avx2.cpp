#include "aha/kernels/weight_gradient/weight_gradient_vector.h"

namespace aha {

void weight_gradient_avx2(int64_t rows, const WeightGradient& job) {
  weight_gradient_f32(rows, job);
  if (job.bias) add_column_sums<FormF32>(rows, *job.dy, job.bias);
}

}  // namespace aha
