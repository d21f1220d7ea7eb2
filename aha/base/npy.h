// Arrays in numpy's files: .npy (one array) and .npz (a zip of them), so that maps can be compared and drawn
// elsewhere.
//
// Values are float32 here; float64, float16, uint8, int32 and int64 files are converted. Little-endian and C
// order only, as numpy writes on every common machine.
#pragma once

#include <cstdint>
#include <map>
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

// The product of the shape must be the number of values. Written whole or not at all.
void write_npy(const std::string& path, const std::vector<int64_t>& shape, std::span<const float> values);

// By member name without ".npy"; stored and deflated members.
std::map<std::string, NpyArray> read_npz(const std::string& path);
std::map<std::string, NpyArray> npz_from_bytes(std::span<const std::byte> bytes, const std::string& name);

}  // namespace aha
