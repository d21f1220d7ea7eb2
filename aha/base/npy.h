// Arrays in numpy's .npy files, so that maps can be compared and drawn elsewhere. Read: floats of 16, 32 and
// 64 bits, bytes and integers, little-endian, C order. Written: float32.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace aha {

struct NpyArray {
  std::vector<int64_t> shape;  // empty for a single number
  std::vector<float> values;   // row-major
};

NpyArray read_npy(const std::string& path);
NpyArray npy_from_bytes(std::span<const std::byte> bytes, const std::string& name);

// The product of the shape must be the number of values.
std::string npy_bytes(const std::vector<int64_t>& shape, std::span<const float> values);
// Written whole or not at all.
void write_npy(const std::string& path, const std::vector<int64_t>& shape, std::span<const float> values);

}  // namespace aha
