#include "aha/kernels/sinkhorn/sinkhorn_vector.h"

namespace aha {
constinit const SinkhornLoops kSinkhornAvx2 = loops_of(Isa::kAvx2);
}
