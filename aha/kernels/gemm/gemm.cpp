#include "aha/kernels/gemm/gemm.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
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

// Rows of a part: whole tiles of 14 and 6 rows in float32, of 32 in the other forms.
int64_t row_unit(Format format) {
  return format == Format::kF32 ? 42 : kPanel;
}

// Of `units` that are handed out to workers, the share of the one who gets most.
double largest_share(int64_t units, int64_t workers) {
  return static_cast<double>((units + workers - 1) / workers) / static_cast<double>(units);
}

// Columns leave each worker with its own part of the weights, rows with its own part of x: what is larger is
// read once, unless that gives one worker more to do.
bool splits_columns(const KernelSet& kernels, int64_t rows, const PackedWeights& weights) {
  const int64_t workers = helpers() + 1, columns = weights.padded_outputs();
  const double by_rows =
                   largest_share((rows + row_unit(kernels.format) - 1) / row_unit(kernels.format), workers),
               by_columns = largest_share(columns / kPanel, workers);
  return by_rows == by_columns ? columns >= rows : by_columns < by_rows;
}

}  // namespace

void gemm(const KernelSet& kernels, int64_t rows, const Activations& x, const PackedWeights& weights,
          const Epilogue& epilogue) {
  if (x.format() != kernels.format || weights.format() != kernels.format || x.rows() < rows ||
      x.columns() != weights.inputs())
    throw input_error("gemm: expected {} x {} in {}, found {} x {} in {} and weights in {}", rows,
                      weights.inputs(), name_of(kernels.format), x.rows(), x.columns(), name_of(x.format()),
                      name_of(weights.format()));
  std::visit(Check{kernels, rows, weights.padded_outputs()}, epilogue);
  const int64_t columns = weights.padded_outputs();
  const double operations = 2.0 * static_cast<double>(rows * columns * weights.padded_inputs());
  if (splits_columns(kernels, rows, weights))
    shared_ranges(columns, kPanel, operations, [&](int64_t first, int64_t end) {
      kernels.gemm({0, rows, first, end}, x, weights, epilogue);
    });
  else
    shared_ranges(rows, row_unit(kernels.format), operations, [&](int64_t first, int64_t end) {
      kernels.gemm({first, end, 0, columns}, x, weights, epilogue);
    });
}

}  // namespace aha
