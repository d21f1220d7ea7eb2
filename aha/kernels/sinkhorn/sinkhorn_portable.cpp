#include "aha/kernels/sinkhorn/sinkhorn_vector.h"

namespace aha {
constinit const SinkhornLoops kSinkhornPortable = loops_of(Isa::kReference);
}
