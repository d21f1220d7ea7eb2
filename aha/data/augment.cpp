#include "aha/data/augment.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aha/base/rng.h"

namespace aha {
namespace {

constexpr uint64_t kPurpose =
    0x61756772;  // keeps these streams apart from those of the shuffle and of the losses

constexpr uint64_t kCutMixPurpose = 0x6375746d;

int reflected(int at, int size) {
  if (size == 1) return 0;
  while (at < 0 || at >= size) at = at < 0 ? -at : 2 * (size - 1) - at;
  return at;
}

// Gaussian of a tenth of the side, cut at two deviations, edges reflected: coarse enough that the removed
// region says nothing.
std::vector<float> blurred(std::span<const float> image, int width, int height) {
  const double sigma = std::max(width, height) / 10.0;
  const int radius = std::max(1, static_cast<int>(std::ceil(2 * sigma)));
  std::vector<float> taps(2 * radius + 1);
  double total = 0;
  for (int t = -radius; t <= radius; ++t)
    total += taps[t + radius] = static_cast<float>(std::exp(-t * t / (2 * sigma * sigma)));
  for (float& tap : taps) tap = static_cast<float>(tap / total);

  std::vector<float> across(image.size(), 0.f), out(image.size(), 0.f);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int t = -radius; t <= radius; ++t) {
        const float* from = &image[(static_cast<size_t>(y) * width + reflected(x + t, width)) * 3];
        float* to = &across[(static_cast<size_t>(y) * width + x) * 3];
        for (int c = 0; c < 3; ++c) to[c] += taps[t + radius] * from[c];
      }
  const size_t row = static_cast<size_t>(width) * 3;
  for (int y = 0; y < height; ++y)
    for (int t = -radius; t <= radius; ++t) {
      const float* from = &across[reflected(y + t, height) * row];
      for (size_t i = 0; i < row; ++i) out[y * row + i] += taps[t + radius] * from[i];
    }
  return out;
}

void remove_regions(std::span<float> image, int width, int height, const AugmentOptions& options, Rng& rng) {
  const int grid = 2 + static_cast<int>(rng.below(7));
  const double keep = rng.uniform(0.3, 1.0);
  const auto kind = rng.below(3);  // black, mean, blur
  std::vector<bool> kept(static_cast<size_t>(grid) * grid);
  for (size_t i = 0; i < kept.size(); ++i) kept[i] = rng.uniform() < keep;
  std::vector<float> blur;
  if (kind == 2) blur = blurred(image, width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      if (kept[static_cast<size_t>(y * grid / height) * grid + x * grid / width]) continue;
      const size_t at = (static_cast<size_t>(y) * width + x) * 3;
      for (int c = 0; c < 3; ++c)
        image[at + c] = kind == 0 ? 0.f : kind == 1 ? static_cast<float>(options.mean[c]) : blur[at + c];
    }
}

}  // namespace

Fields fields(AugmentOptions& o) {
  return Fields()
      .add("pad", o.pad, "largest random shift in pixels; 0 = none")
      .range(0, 512)
      .add("flip", o.flip, "mirror half of the images")
      .add("mask-share", o.mask_share, "share of training images with random regions removed")
      .range(0, 1)
      .add("cutmix-share", o.cutmix_share, "share of training images that show a rectangle of another one")
      .range(0, 1);
}

void augment(const Image& image, const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index,
             std::span<float> out) {
  Rng rng(seed, stream_id({kPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)}));
  const int shift_y = static_cast<int>(rng.below(2 * options.pad + 1)) - options.pad;
  const int shift_x = static_cast<int>(rng.below(2 * options.pad + 1)) - options.pad;
  const bool mirror = rng.uniform() < 0.5 && options.flip;
  const bool mask = rng.uniform() < options.mask_share;
  float* to = out.data();
  for (int y = 0; y < image.height; ++y) {
    const uint8_t* row = image.row(reflected(y + shift_y, image.height));
    for (int x = 0; x < image.width; ++x) {
      const int seen = mirror ? image.width - 1 - x : x;
      const uint8_t* from = row + 3 * reflected(seen + shift_x, image.width);
      for (int c = 0; c < 3; ++c) *to++ = from[c] * (1.f / 255.f);
    }
  }
  if (mask) remove_regions(out, image.width, image.height, options, rng);
}

CutMix draw_cutmix(const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index, int64_t count,
                   int side) {
  Rng rng(seed, stream_id({kCutMixPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index)}));
  if (rng.uniform() >= options.cutmix_share) return {};
  CutMix cut;
  cut.partner = static_cast<int64_t>(rng.below(static_cast<uint64_t>(count)));
  const int length = static_cast<int>(std::lround(side * std::sqrt(rng.uniform())));
  const auto span = [&](int& begin, int& size) {
    const int center = static_cast<int>(rng.below(static_cast<uint64_t>(side)));
    begin = std::clamp(center - length / 2, 0, side);
    size = std::clamp(center - length / 2 + length, 0, side) - begin;
  };
  span(cut.x, cut.width);
  span(cut.y, cut.height);
  return cut;
}

void unchanged(const Image& image, std::span<float> out) {
  std::transform(image.rgb.begin(), image.rgb.end(), out.begin(),
                 [](uint8_t v) { return v * (1.f / 255.f); });
}

}  // namespace aha
