// Counter-based random numbers: the n-th number of a stream is a pure function of (seed, stream, n).
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). No state to share or to
// save: the same seed gives the same result with any number of threads, and a resumed run continues where it
// stopped by knowing its step number alone.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace aha {

// Mixes several numbers (epoch, step, image, purpose) into one stream id.
uint64_t stream_id(std::initializer_list<uint64_t> parts);

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // Random access.
  std::array<uint32_t, 4> block(uint64_t counter) const;
  uint32_t bits_at(uint64_t n) const { return block(n / 4)[n % 4]; }
  float uniform_at(uint64_t n) const { return unit_from_bits(bits_at(n)); }

  // Sequential use; the same numbers as the n-th call of the random access.
  uint32_t bits();
  double uniform() { return unit_from_bits(bits()); }  // in (0, 1)
  uint64_t below(uint64_t n);                          // in 0..n-1, unbiased
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal();                                             // mean 0, standard deviation 1
  double gumbel() { return -std::log(-std::log(uniform())); }  // location 0, scale 1
  std::vector<int64_t> permutation(int64_t n);

  // 23 bits, centered in their cell: never 0 and never 1, so that log and log(-log) are finite. (With 24 bits
  // the half is rounded away in a float and the largest value would be 1.)
  static float unit_from_bits(uint32_t bits) { return (static_cast<float>(bits >> 9) + 0.5f) * 0x1p-23f; }

 private:
  uint64_t seed_, stream_, next_ = 0;
};

}  // namespace aha
