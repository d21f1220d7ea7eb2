#include "aha/kernels/sinkhorn/sinkhorn_loops.inl"

namespace aha {
constinit const SinkhornLoops kSinkhornPortable = loops_of(Isa::kReference);
}
