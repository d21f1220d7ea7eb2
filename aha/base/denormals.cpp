// Apart from parallel.cpp, because the launcher needs it before OpenMP's library may be loaded.
#include "aha/base/parallel.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace aha {

void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // FTZ | DAZ
#endif
}

}  // namespace aha
