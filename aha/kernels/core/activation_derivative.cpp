#include "aha/kernels/core/activation_derivative.h"

#include <algorithm>
#include <cmath>

namespace aha {

ActivationDerivative::ActivationDerivative(Format format, int64_t rows, int64_t columns)
    : format_(format), rows_(rows), columns_(columns) {
  if (format == Format::kBf16)
    bytes_ = AlignedBuffer<uint8_t>(rounded_to_panel(rows) * rounded_to_panel(columns));
  else
    wide_ = Activations(format, rows, columns);
}

int64_t ActivationDerivative::bytes() const {
  return rounded_to_panel(rows_) * rounded_to_panel(columns_) * (format_ == Format::kBf16 ? 1 : 4);
}

int64_t ActivationDerivative::index(int64_t row, int64_t column) const {
  const int64_t panels = rounded_to_panel(columns_) / kPanel;
  return ((row / kPanel * panels + column / kPanel) * kPanel + row % kPanel) * kPanel + column % kPanel;
}

float ActivationDerivative::at(int64_t row, int64_t column) const {
  if (format_ != Format::kBf16) return wide_.at(row, column);
  return static_cast<float>(bytes_[index(row, column)] - kZero) * kStep;
}

void ActivationDerivative::set(int64_t row, int64_t column, float value) {
  if (format_ != Format::kBf16) return wide_.set(row, column, value);
  bytes_[index(row, column)] =
      static_cast<uint8_t>(std::clamp(std::nearbyint(value / kStep) + kZero, 0.f, 255.f));
}

}  // namespace aha
