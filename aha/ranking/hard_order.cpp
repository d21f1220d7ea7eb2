#include "aha/ranking/hard_order.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"

namespace aha {
namespace {

const std::vector<std::string> kNames = {"index", "reverse", "jitter"};

// Larger values get smaller keys.
uint32_t descending_key(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);  // -0 becomes 0
  return bits >> 31 ? bits : ~bits & 0x7fffffff;
}

double share_of_ties(const std::vector<uint64_t>& sorted) {
  int64_t tied = 0;
  const auto same = [&](size_t a, size_t b) { return sorted[a] >> 32 == sorted[b] >> 32; };
  for (size_t r = 0; r < sorted.size(); ++r)
    tied += (r > 0 && same(r, r - 1)) || (r + 1 < sorted.size() && same(r, r + 1));
  return sorted.empty() ? 0 : static_cast<double>(tied) / sorted.size();
}

// Value in the upper, tie rule in the lower half: one sort of integers is exact and needs no stability.
std::vector<uint64_t> sorted_keys(const std::vector<float>& values, bool reverse) {
  std::vector<uint64_t> keys(values.size());
  for (size_t n = 0; n < keys.size(); ++n)
    keys[n] = uint64_t{descending_key(values[n])} << 32 |
              (reverse ? ~static_cast<uint32_t>(n) : static_cast<uint32_t>(n));
  std::sort(keys.begin(), keys.end());
  return keys;
}

void add_jitter(std::vector<float>& values, Rng rng) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double lowest = *low, range = double(*high) - lowest;
  for (float& value : values)
    value = static_cast<float>((range > 0 ? (value - lowest) / range : 0.0) + 1e-4 * rng.normal());
}

}  // namespace

TieRule tie_rule_from_name(const std::string& name) {
  for (size_t n = 0; n < kNames.size(); ++n)
    if (kNames[n] == name) return static_cast<TieRule>(n);
  throw unknown_name_error("tie rule", name, kNames);
}

HardOrder hard_order(const Tensor& map, TieRule rule, uint64_t seed, uint64_t first_image) {
  if (map.dim() != 2 && map.dim() != 3)
    throw input_error("map: expected shape [B, N] or [B, H, W], found {}",
                      text_from_shape({map.sizes().data(), map.sizes().size()}));
  const Tensor flat = map.detach().to(torch::kCPU, torch::kFloat32).contiguous().flatten(1);  // (B, N)
  const int64_t B = flat.size(0), N = flat.size(1);
  if (N >= int64_t{1} << 32) throw input_error("map: expected fewer than 2^32 elements, found {}", N);
  HardOrder result{torch::empty({B, N}, torch::kInt64), torch::empty({B}, torch::kFloat64)};
  parallel_for(B, [&](int64_t b, int) {
    const float* begin = flat.data_ptr<float>() + b * N;
    std::vector<float> values(begin, begin + N);
    for (int64_t n = 0; n < N; ++n)
      if (!std::isfinite(values[n]))
        throw input_error("map: element {} of image {} is {}, expected finite values", n, b, values[n]);
    auto keys = sorted_keys(values, rule == TieRule::kReverse);
    result.tie_rate.data_ptr<double>()[b] = share_of_ties(keys);
    if (rule == TieRule::kJitter && N > 0) {
      add_jitter(values, Rng(seed, stream_id({first_image + b})));
      keys = sorted_keys(values, false);
    }
    int64_t* order = result.order.data_ptr<int64_t>() + b * N;
    for (int64_t r = 0; r < N; ++r) {
      const auto low = static_cast<uint32_t>(keys[r]);
      order[r] = rule == TieRule::kReverse ? static_cast<uint32_t>(~low) : low;
    }
  });
  return result;
}

}  // namespace aha
