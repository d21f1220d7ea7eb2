#include "aha/kernels/kernel_list.h"
#include "aha/kernels/sets/kernels_vector.h"

namespace aha {

constinit const KernelSet kAvx512Kernels = vector_kernels("avx512 f32", Isa::kAvx512);

}  // namespace aha
