#include "aha/kernels/sinkhorn/sinkhorn_loops.inl"

namespace aha {
constinit const SinkhornLoops kSinkhornAvx2 = loops_of(Isa::kAvx2);
}
