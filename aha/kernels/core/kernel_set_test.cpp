#include "aha/kernels/kernel_set.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>

#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

// Members from `gemm` on are pointers, one for each operation. How many of them are null.
int missing_operations(const KernelSet& kernels) {
  constexpr size_t kFirst = offsetof(KernelSet, gemm);
  static_assert((sizeof(KernelSet) - kFirst) % sizeof(void*) == 0);
  int missing = 0;
  for (size_t at = kFirst; at < sizeof(KernelSet); at += sizeof(void*)) {
    const void* operation = nullptr;
    std::memcpy(&operation, reinterpret_cast<const char*>(&kernels) + at, sizeof operation);
    missing += operation == nullptr;
  }
  return missing;
}

TEST(KernelSets, EverySetHasEveryOperation) {
  EXPECT_GE(missing_operations(KernelSet{}), 16);  // an empty set lacks them all
  for (const KernelSet* kernels : checks::sets_to_test())
    EXPECT_EQ(missing_operations(*kernels), 0) << kernels->name;
  for (const Format format : {Format::kF32, Format::kBf16, Format::kBf16Pair})
    EXPECT_EQ(missing_operations(reference_kernels(format)), 0) << reference_kernels(format).name;
}

TEST(KernelSets, TheListGivesTheBestSetThatALevelAllows) {
  EXPECT_EQ(kernel_set(Isa::kReference, Precision::kF32).isa, Isa::kReference);
  EXPECT_EQ(kernel_set(Isa::kAvx2, Precision::kBf16).name, "avx2 f32");
  EXPECT_EQ(kernel_set(Isa::kAvx512Bf16, Precision::kF32).name, "avx512 f32");
  EXPECT_EQ(kernel_set(Isa::kAvx512Bf16, Precision::kBf16).name, "avx512 bf16");
  EXPECT_EQ(kernel_set(Isa::kAmx, Precision::kF32).name, "amx exact");
  EXPECT_EQ(kernel_set(Isa::kAmx, Precision::kBf16).name, "amx bf16");
}

}  // namespace
}  // namespace aha
