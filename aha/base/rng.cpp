#include "aha/base/rng.h"

#include <numeric>
#include <utility>

namespace aha {

uint64_t stream_id(std::initializer_list<uint64_t> parts) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (uint64_t part : parts) {  // splitmix64's finalizer over the running sum
    hash += part + 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    hash ^= hash >> 31;
  }
  return hash;
}

std::array<uint32_t, 4> Rng::block(uint64_t counter) const {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)};
  uint32_t k0 = static_cast<uint32_t>(seed_), k1 = static_cast<uint32_t>(seed_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint32_t Rng::bits() {
  return bits_at(next_++);
}

uint64_t Rng::below(uint64_t n) {
  // Lemire's multiply-and-reject on 64 bits.
  for (;;) {
    const uint64_t high = bits(), x = high << 32 | bits();
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * n;
    const auto low = static_cast<uint64_t>(product);
    if (low >= n || low >= (0 - n) % n) return static_cast<uint64_t>(product >> 64);
  }
}

double Rng::normal() {
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

std::vector<int64_t> Rng::permutation(int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[below(static_cast<uint64_t>(i) + 1)]);
  return order;
}

}  // namespace aha
