// GEMM of activations with frozen weights, finished in place: y = epilogue(x W^T).
//
// The sums of a 32-column panel of one row go from the registers straight into one of the epilogues below, so
// that bias, GELU, residual and the cut into heads cost no pass over memory. Sums are float32. The value of a
// row depends on that row and the weights alone: not on how many rows there are, nor on its place among them.
//
// Cost: 2 * rows * K * N flops. Callers split images among threads; where helpers are idle
// (base/shared_for.h) the rows or the columns of one product are split too.
#pragma once

#include <array>
#include <variant>

#include "aha/kernels/core/activation_derivative.h"
#include "aha/kernels/core/activations.h"
#include "aha/kernels/core/heads.h"
#include "aha/kernels/core/packed_weights.h"

namespace aha {

// Below, `sum` is x W^T at (row, n); n runs over padded_outputs(). A bias may be null; otherwise it has
// padded_outputs() values. Rows of float32 outputs are `stride` floats apart, at least padded_outputs().

// out = sum + bias
struct StoreRows {
  float* out = nullptr;
  int64_t stride = 0;
  const float* bias = nullptr;
};
// out += sum + bias
struct AddToRows {
  float* out = nullptr;
  int64_t stride = 0;
  const float* bias = nullptr;
};
// out = sum + table[row % period]: a bias that depends on the place of a token
struct StoreWithTable {
  float* out = nullptr;
  int64_t stride = 0;
  const float* table = nullptr;  // (period, padded_outputs)
  int64_t period = 1;
};
// out = sum + bias, as the left operand of the next GEMM
struct StoreActivations {
  Activations* out = nullptr;
  const float* bias = nullptr;
};
// out = gelu(sum + bias); derivative = gelu'(sum + bias) unless null
struct GeluToActivations {
  Activations* out = nullptr;
  const float* bias = nullptr;
  ActivationDerivative* derivative = nullptr;
};
// out = sum * factor: the backward pass through GELU with the saved derivative
struct ScaleToActivations {
  Activations* out = nullptr;
  const ActivationDerivative* factor = nullptr;
};
// Columns cut into heads: the first sections[0]->columns() to sections[0], the next to sections[1], ...; null
// ends the list.
struct StoreHeads {
  std::array<Heads*, 3> sections = {};
  const float* bias = nullptr;
};

using Epilogue = std::variant<StoreRows, AddToRows, StoreWithTable, StoreActivations, GeluToActivations,
                              ScaleToActivations, StoreHeads>;

// What one call of a kernel computes of the result: rows from a multiple of 32 on (of any row in float32),
// columns from a multiple of 32 to another.
struct GemmPart {
  int64_t first_row = 0, end_row = 0, first_column = 0, end_column = 0;
};

struct KernelSet;

// The first `rows` rows of x. Shapes and forms are checked: input error.
void gemm(const KernelSet& kernels, int64_t rows, const Activations& x, const PackedWeights& weights,
          const Epilogue& epilogue);

}  // namespace aha
