#include "aha/kernels/swiglu/swiglu.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/sets/kernels_ref.h"

namespace aha {
namespace {

constexpr double kOfAValue = 80;  // operations

double operations_of(int64_t rows, const Activations& half) {
  return kOfAValue * static_cast<double>(rows * half.columns());
}

void check_gates(const KernelSet& kernels, int64_t rows, const Activations& gates, const Activations& half) {
  if (gates.columns() != 2 * half.columns() || half.columns() % kPanel != 0 || rows > gates.rows() ||
      rows > half.rows() || gates.format() != kernels.format || half.format() != kernels.format)
    throw input_error(
        "swiglu: expected gates of {} columns, twice a multiple of {}, for {} rows in {}, found {} x {} in "
        "{}",
        2 * half.columns(), kPanel, rows, name_of(kernels.format), gates.rows(), gates.columns(),
        name_of(gates.format()));
}

double sigmoid(double a) {
  return 1 / (1 + std::exp(-a));
}

}  // namespace

void swiglu_ref(int64_t first, int64_t end, const Activations& gates, Activations& out) {
  for (int64_t r = first; r < end; ++r)
    for (int64_t c = 0; c < out.columns(); ++c) {
      const double a = gates.at(r, c), b = gates.at(r, c + out.columns());
      out.set(r, c, static_cast<float>(a * sigmoid(a) * b));
    }
}

void swiglu_backward_ref(int64_t first, int64_t end, const Activations& gates, const Activations& dout,
                         Activations& dgates) {
  for (int64_t r = first; r < end; ++r)
    for (int64_t c = 0; c < dout.columns(); ++c) {
      const double a = gates.at(r, c), b = gates.at(r, c + dout.columns()), g = dout.at(r, c), s = sigmoid(a);
      dgates.set(r, c, static_cast<float>(g * b * s * (1 + a * (1 - s))));
      dgates.set(r, c + dout.columns(), static_cast<float>(g * a * s));
    }
}

void swiglu(const KernelSet& kernels, int64_t rows, const Activations& gates, Activations& out) {
  check_gates(kernels, rows, gates, out);
  shared_ranges(rows, 1, operations_of(rows, out),
                [&](int64_t first, int64_t end) { kernels.swiglu(first, end, gates, out); });
}

void swiglu_backward(const KernelSet& kernels, int64_t rows, const Activations& gates,
                     const Activations& dout, Activations& dgates) {
  check_gates(kernels, rows, gates, dout);
  check_gates(kernels, rows, dgates, dout);
  shared_ranges(rows, 1, operations_of(rows, dout), [&](int64_t first, int64_t end) {
    kernels.swiglu_backward(first, end, gates, dout, dgates);
  });
}

}  // namespace aha
