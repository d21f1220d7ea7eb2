#include "aha/kernels/gemm/gemm.h"

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

struct Check {
  const KernelSet& kernels;
  int64_t rows, columns;  // of the result; columns padded

  void rows_of_floats(const float* out, int64_t stride) const {
    if (!out || stride < columns)
      throw input_error("gemm: expected rows at least {} floats apart, found {}", columns, stride);
  }
  template <class Operand>  // Activations or ActivationDerivative
  void operand(const Operand* a, std::string_view what) const {
    if (!a || a->format() != kernels.format || a->rows() < rows || rounded_to_panel(a->columns()) != columns)
      throw input_error("{}: expected {} x {} in {}, found {} x {} in {}", what, rows, columns,
                        name_of(kernels.format), a ? a->rows() : 0, a ? a->columns() : 0,
                        a ? name_of(a->format()) : "nothing");
  }

  void operator()(const StoreRows& e) const { rows_of_floats(e.out, e.stride); }
  void operator()(const AddToRows& e) const { rows_of_floats(e.out, e.stride); }
  void operator()(const StoreWithTable& e) const {
    rows_of_floats(e.out, e.stride);
    if (!e.table || e.period < 1)
      throw input_error("gemm: expected a table of at least one row, found {}", e.period);
  }
  void operator()(const StoreActivations& e) const { operand(e.out, "GEMM"); }
  void operator()(const GeluToActivations& e) const {
    operand(e.out, "GEMM after GELU");
    if (e.derivative) operand(e.derivative, "derivative of GELU");
  }
  void operator()(const ScaleToActivations& e) const {
    operand(e.out, "scaled GEMM");
    operand(e.factor, "factor");
  }
  void operator()(const StoreHeads& e) const {
    int64_t covered = 0;
    for (const Heads* heads : e.sections) {
      if (!heads) break;
      if (heads->format() != kernels.format || heads->images() * heads->tokens() < rows)
        throw input_error("heads: expected {} rows in {}, found {} in {}", rows, name_of(kernels.format),
                          heads->images() * heads->tokens(), name_of(heads->format()));
      covered += heads->columns();
    }
    if (covered != columns) throw input_error("heads: expected {} columns, found {}", columns, covered);
  }
};

}  // namespace

void gemm(const KernelSet& kernels, int64_t rows, const Activations& x, const PackedWeights& weights,
          const Epilogue& epilogue) {
  if (x.format() != kernels.format || weights.format() != kernels.format || x.rows() < rows ||
      x.columns() != weights.inputs())
    throw input_error("gemm: expected {} x {} in {}, found {} x {} in {} and weights in {}", rows,
                      weights.inputs(), name_of(kernels.format), x.rows(), x.columns(), name_of(x.format()),
                      name_of(weights.format()));
  std::visit(Check{kernels, rows, weights.padded_outputs()}, epilogue);
  kernels.gemm(rows, x, weights, epilogue);
}

}  // namespace aha
