#include "aha/kernels/kernel_list.h"
#include "aha/kernels/sets/kernels_vector.h"

namespace aha {

constinit const KernelSet kAvx2Kernels = vector_kernels("avx2 f32", Isa::kAvx2);

}  // namespace aha
