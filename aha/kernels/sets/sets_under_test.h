// What the tests of this module share: the kernel sets to try, random operands, tolerances by form.
#pragma once

#include <cctype>
#include <string>
#include <vector>

#include "aha/base/rng.h"
#include "aha/kernels/kernel_set.h"
#include "aha/testing/close.h"
#include "aha/testing/tile_model.h"

namespace aha::checks {

// Every set that runs here, and the tile kernels on modeled tiles where the machine has AVX-512.
inline std::vector<const KernelSet*> sets_to_test() {
  std::vector<const KernelSet*> sets = available_kernel_sets();
  if (present_isa().isa >= Isa::kAvx512) {
    sets.push_back(&modeled_tile_kernels(Format::kBf16));
    sets.push_back(&modeled_tile_kernels(Format::kBf16Pair));
  }
  return sets;
}

inline std::string set_name(const ::testing::TestParamInfo<const KernelSet*>& info) {
  std::string name(info.param->name);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

inline std::vector<float> random_floats(int64_t n, uint64_t seed, float scale = 1.0f) {
  Rng rng(seed);
  std::vector<float> values(n);
  for (float& x : values) x = scale * static_cast<float>(rng.normal());
  return values;
}

inline Activations random_operand(Format format, int64_t rows, int64_t columns, uint64_t seed) {
  Rng rng(seed);
  Activations a(format, rows, columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) a.set(r, c, static_cast<float>(rng.normal()));
  return a;
}

inline Heads random_heads(Format format, int64_t images, int64_t heads, int64_t tokens, int64_t width,
                          uint64_t seed, float scale = 1.0f) {
  Rng rng(seed);
  Heads a(format, images, heads, tokens, width);
  for (int64_t i = 0; i < images; ++i)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t c = 0; c < width; ++c) a.set(i, h, t, c, scale * static_cast<float>(rng.normal()));
  return a;
}

// All elements of Activations or ActivationDerivative, row by row.
template <class Operand>
std::vector<float> floats_of(const Operand& a) {
  std::vector<float> values;
  for (int64_t r = 0; r < a.rows(); ++r)
    for (int64_t c = 0; c < a.columns(); ++c) values.push_back(a.at(r, c));
  return values;
}

inline std::vector<float> floats_of(const Heads& a) {
  std::vector<float> values;
  for (int64_t i = 0; i < a.images(); ++i)
    for (int64_t h = 0; h < a.heads(); ++h)
      for (int64_t t = 0; t < a.tokens(); ++t)
        for (int64_t c = 0; c < a.width(); ++c) values.push_back(a.at(i, h, t, c));
  return values;
}

// Relative error of one product: what a form drops. Pairs leave out low * low, up to 2^-18.
inline double product_epsilon(Format format) {
  return format == Format::kBf16Pair ? 0x1p-18 : kF32Epsilon;
}

// Rounding to bf16 changes a value by up to u = 2^-8 of it, evenly spread: by u / sqrt(3) of it or less, root
// mean square. The same for what a form keeps of a value.
inline double rounding_deviation(Format format) {
  const double most = format == Format::kF32 ? 0 : format == Format::kBf16 ? 0x1p-8 : 0x1p-17;
  return most / std::sqrt(3.0);
}

// The same for the product of two rounded values. Pairs also drop low * low, 2^-18 of it.
inline double rounded_product_deviation(Format format) {
  return std::hypot(rounding_deviation(format), rounding_deviation(format),
                    format == Format::kBf16Pair ? 0x1p-18 : 0);
}

// Relative error, over all elements, of what follows `products` rounded products in a row: each adds an error
// of its own, independent of the others, and hands on those before it. The margin is for layers that amplify.
// Networks in aha/nn were seen at 0.1 to 0.6 of this.
inline double chain_bound(Format format, int64_t products) {
  constexpr double kMargin = 1.25;
  return kMargin * std::sqrt(static_cast<double>(products)) * rounded_product_deviation(format);
}

// Relative error of storing a value: two correct roundings of nearly equal values may differ by one unit in
// the last place.
inline double storing_epsilon(Format format) {
  switch (format) {
    case Format::kF32:
      return 2 * kF32Epsilon;
    case Format::kBf16:
      return 0x1p-7;
    case Format::kBf16Pair:
      return 0x1p-16;
  }
  return 0;
}

}  // namespace aha::checks
