#include "aha/kernels/sinkhorn/sinkhorn_vector.h"

namespace aha {
constinit const SinkhornLoops kSinkhornAvx512 = loops_of(Isa::kAvx512);
}
