#include "aha/kernels/sinkhorn/sinkhorn_loops.inl"

namespace aha {
constinit const SinkhornLoops kSinkhornAvx512 = loops_of(Isa::kAvx512);
}
