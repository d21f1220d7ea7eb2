// The two implementations of rotate_heads.
#pragma once

#include "aha/kernels/core/heads.h"

namespace aha {

void rotate_heads_ref(int64_t images, int64_t first_token, const float* cos, const float* sin, Heads& heads);
void rotate_heads_avx512(int64_t images, int64_t first_token, const float* cos, const float* sin, Heads& heads);  // width a multiple of 32

}  // namespace aha
