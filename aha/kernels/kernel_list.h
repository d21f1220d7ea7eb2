// The sets that kernel_set.cpp chooses from, each defined in the file of its instruction set.
#pragma once

#include "aha/kernels/kernel_set.h"

namespace aha {

extern const KernelSet kAmxBf16Kernels;     // kernels_amx.cpp
extern const KernelSet kAmxExactKernels;    // kernels_amx.cpp
extern const KernelSet kAvx512Bf16Kernels;  // kernels_avx512bf16.cpp
extern const KernelSet kAvx512Kernels;      // kernels_avx512.cpp
extern const KernelSet kAvx2Kernels;        // kernels_avx2.cpp

}  // namespace aha
