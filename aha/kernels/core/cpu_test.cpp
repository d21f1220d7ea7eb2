#include "aha/kernels/core/cpu.h"

#include <gmock/gmock.h>

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

TEST(Cpu, ARequestLowersTheLevel) {
  const IsaChoice present{Isa::kAmx, "trial passed"};
  EXPECT_EQ(lowered_isa(present, "").isa, Isa::kAmx);
  EXPECT_EQ(lowered_isa(present, "amx").isa, Isa::kAmx);
  EXPECT_EQ(lowered_isa(present, "avx512bf16").isa, Isa::kAvx512Bf16);
  EXPECT_EQ(lowered_isa(present, "avx512").isa, Isa::kAvx512);
  EXPECT_EQ(lowered_isa(present, "avx2").isa, Isa::kAvx2);
  EXPECT_EQ(lowered_isa(present, "ref").isa, Isa::kReference);
}

TEST(Cpu, ARequestForMoreThanThereIsFallsBackAndSaysSo) {
  const IsaChoice given = lowered_isa({Isa::kAvx2, "AVX-512: not in this CPU"}, "amx");
  EXPECT_EQ(given.isa, Isa::kAvx2);
  EXPECT_THAT(given.why, ::testing::HasSubstr("AHA_ISA=amx asked for more"));
  EXPECT_THAT(given.why, ::testing::HasSubstr("AVX-512: not in this CPU"));
}

TEST(Cpu, AnUnknownRequestIsAnInputErrorThatListsTheNames) {
  try {
    lowered_isa({Isa::kAvx2, ""}, "avx1024");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    for (const char* name : {"avx1024", "ref", "avx2", "avx512", "avx512bf16", "amx"})
      EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
  }
}

TEST(Cpu, BestNeverExceedsPresent) {
  EXPECT_LE(best_isa(), present_isa().isa);
}

TEST(KernelSets, EveryLevelServesEveryPrecision) {
  struct Row {
    Isa asked, f32, bf16;  // the level asked for, and those of the sets it gives
    Format f32_format, bf16_format;
  };
  constexpr Row kRows[] = {
      {Isa::kReference, Isa::kReference, Isa::kReference, Format::kF32, Format::kF32},
      {Isa::kAvx2, Isa::kAvx2, Isa::kAvx2, Format::kF32, Format::kF32},
      {Isa::kAvx512, Isa::kAvx512, Isa::kAvx512, Format::kF32, Format::kF32},
      {Isa::kAvx512Bf16, Isa::kAvx512, Isa::kAvx512Bf16, Format::kF32, Format::kBf16},
      {Isa::kAmx, Isa::kAmx, Isa::kAmx, Format::kBf16Pair, Format::kBf16},
  };
  for (const Row& row : kRows) {
    const KernelSet &f32 = kernel_set(row.asked, Precision::kF32), &bf16 = kernel_set(row.asked, Precision::kBf16);
    EXPECT_EQ(f32.isa, row.f32);
    EXPECT_EQ(f32.format, row.f32_format);
    EXPECT_EQ(bf16.isa, row.bf16);
    EXPECT_EQ(bf16.format, row.bf16_format);
  }
}

}  // namespace
}  // namespace aha
