#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "aha/base/rng.h"
#include "aha/kernels/core/cpu.h"
#include "aha/kernels/rope/rope_loops.h"

namespace aha {
namespace {

Heads random_heads(Format format, int64_t tokens, int64_t width) {
  Heads heads(format, 2, 3, tokens, width);
  Rng rng(4);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t i = 0; i < width; ++i) heads.set(b, h, t, i, static_cast<float>(rng.normal()));
  return heads;
}

TEST(Rope, AQuarterTurnSwapsTheHalvesAndPrefixTokensStay) {
  Heads heads(Format::kF32, 1, 1, 3, 32);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < 32; ++i) heads.set(0, 0, t, i, static_cast<float>(100 * t + i));
  const std::vector<float> cos(64, 0.f), sin(64, 1.f);
  rotate_heads_ref(1, 1, cos.data(), sin.data(), heads);
  EXPECT_EQ(heads.at(0, 0, 0, 5), 5);
  EXPECT_EQ(heads.at(0, 0, 1, 5), -(100 + 21));
  EXPECT_EQ(heads.at(0, 0, 1, 21), 100 + 5);
}

TEST(Rope, Avx512MatchesTheReferenceInEveryForm) {
  if (present_isa().isa < Isa::kAvx512) GTEST_SKIP() << "no AVX-512 here";
  for (const Format format : {Format::kF32, Format::kBf16, Format::kBf16Pair})
    for (const int64_t width : {32, 64, 96}) {
      const int64_t tokens = 19, first = 5;
      std::vector<float> cos((tokens - first) * width), sin(cos.size());
      for (size_t i = 0; i < cos.size(); ++i) cos[i] = std::cos(0.1f * i), sin[i] = std::sin(0.1f * i);
      Heads expected = random_heads(format, tokens, width), found = random_heads(format, tokens, width);
      rotate_heads_ref(2, first, cos.data(), sin.data(), expected);
      rotate_heads_avx512(2, first, cos.data(), sin.data(), found);
      // One unit in the last place of the form, because a fused product rounds once where the reference rounds twice.
      const float unit = format == Format::kF32 ? 0x1p-23f : format == Format::kBf16 ? 0x1p-7f : 0x1p-15f;
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t i = 0; i < width; ++i)
          EXPECT_NEAR(found.at(1, 2, t, i), expected.at(1, 2, t, i), unit * 8) << name_of(format) << " " << t << " " << i;
    }
}

}  // namespace
}  // namespace aha
