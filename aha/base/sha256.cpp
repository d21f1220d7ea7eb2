#include "aha/base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

}  // namespace

void Sha256::block(const uint8_t* data) {
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
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> add = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += add[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  while (left > 0) {
    if (held_ == 0 && left >= 64) {
      block(data);
      data += 64, left -= 64;
      continue;
    }
    const size_t take = std::min(left, 64 - held_);
    std::memcpy(buffer_.data() + held_, data, take);
    held_ += take, data += take, left -= take;
    if (held_ == 64) block(buffer_.data()), held_ = 0;
  }
}

std::string Sha256::hex() {
  const uint64_t bits = total_ * 8;
  const std::byte one{0x80}, zero{0};
  update({&one, 1});
  while (held_ != 56) update({&zero, 1});
  std::array<std::byte, 8> length;
  for (int i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(length);
  std::string out;
  for (uint32_t word : state_) out += fmt::format("{:08x}", word);
  return out;
}

}  // namespace aha
