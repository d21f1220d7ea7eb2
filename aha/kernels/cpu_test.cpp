#include "aha/kernels/cpu.h"

#include <gmock/gmock.h>

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

TEST(Cpu, ARequestLowersTheLevel) {
  const IsaChoice present{Isa::kAmx, "trial passed"};
  EXPECT_EQ(lowered_isa(present, "").isa, Isa::kAmx);
  EXPECT_EQ(lowered_isa(present, "amx").isa, Isa::kAmx);
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
    for (const char* name : {"avx1024", "ref", "avx2", "avx512", "amx"})
      EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
  }
}

TEST(Cpu, BestNeverExceedsPresent) {
  EXPECT_LE(best_isa(), present_isa().isa);
}

TEST(KernelSets, EveryLevelServesEveryPrecision) {
  for (Isa isa : {Isa::kReference, Isa::kAvx2, Isa::kAvx512, Isa::kAmx})
    for (Precision precision : {Precision::kF32, Precision::kBf16}) {
      const KernelSet& kernels = kernel_set(isa, precision);
      EXPECT_EQ(kernels.isa, isa);
      const Format expected = isa != Isa::kAmx               ? Format::kF32
                              : precision == Precision::kF32 ? Format::kBf16Pair
                                                             : Format::kBf16;
      EXPECT_EQ(kernels.format, expected);
    }
}

}  // namespace
}  // namespace aha
