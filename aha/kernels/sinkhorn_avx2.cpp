#include "aha/kernels/sinkhorn_loops.inl"

namespace aha {
constinit const SinkhornLoops kSinkhornAvx2 = loops_of(Isa::kAvx2);
}
