#include "aha/kernels/core/slopes.h"

#include <algorithm>
#include <cmath>

namespace aha {

Slopes::Slopes(Format format, int64_t rows, int64_t columns) : format_(format), rows_(rows), columns_(columns) {
  if (format == Format::kBf16)
    bytes_ = AlignedBuffer<uint8_t>(rounded_to_strip(rows) * rounded_to_strip(columns));
  else
    wide_ = Activations(format, rows, columns);
}

int64_t Slopes::bytes() const {
  return rounded_to_strip(rows_) * rounded_to_strip(columns_) * (format_ == Format::kBf16 ? 1 : 4);
}

int64_t Slopes::index(int64_t row, int64_t column) const {
  const int64_t strips = rounded_to_strip(columns_) / kStrip;
  return ((row / kStrip * strips + column / kStrip) * kStrip + row % kStrip) * kStrip + column % kStrip;
}

float Slopes::at(int64_t row, int64_t column) const {
  if (format_ != Format::kBf16) return wide_.at(row, column);
  return static_cast<float>(bytes_[index(row, column)] - kZero) * kStep;
}

void Slopes::set(int64_t row, int64_t column, float value) {
  if (format_ != Format::kBf16) return wide_.set(row, column, value);
  bytes_[index(row, column)] = static_cast<uint8_t>(std::clamp(std::nearbyint(value / kStep) + kZero, 0.f, 255.f));
}

}  // namespace aha
