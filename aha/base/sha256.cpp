// SHA-256 (FIPS 180-4), for naming weights by their content.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "aha/base/files.h"

namespace aha {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes. cbrt in long double has
// 64 bits: enough for 3 + 32.
std::array<uint32_t, 64> round_constants() {
  std::array<uint32_t, 64> k{};
  int found = 0;
  for (int n = 2; found < 64; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (!prime) continue;
    const long double root = std::cbrt(static_cast<long double>(n));
    k[found++] = static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L);
  }
  return k;
}

using State = std::array<uint32_t, 8>;

void take_block(const uint8_t* data, State& state) {
  static const auto k = round_constants();
  std::array<uint32_t, 64> w;
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t{data[4 * i]} << 24 | uint32_t{data[4 * i + 1]} << 16 | uint32_t{data[4 * i + 2]} << 8 |
           data[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const State add = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += add[i];
}

}  // namespace

std::string sha256_of_bytes(std::span<const std::byte> bytes) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  const size_t whole = bytes.size() / 64 * 64, rest = bytes.size() - whole;
  for (size_t at = 0; at < whole; at += 64) take_block(data + at, state);
  // The rest, a one bit, zeros, and the length in bits, big-endian: one block or two.
  std::array<uint8_t, 128> last{};
  if (rest > 0) std::memcpy(last.data(), data + whole, rest);
  last[rest] = 0x80;
  const size_t end = rest < 56 ? 64 : 128;
  for (size_t i = 0; i < 8; ++i)
    last[end - 1 - i] = static_cast<uint8_t>(uint64_t{bytes.size()} * 8 >> 8 * i);
  for (size_t at = 0; at < end; at += 64) take_block(last.data() + at, state);
  std::string out;
  for (const uint32_t word : state) out += fmt::format("{:08x}", word);
  return out;
}

}  // namespace aha
