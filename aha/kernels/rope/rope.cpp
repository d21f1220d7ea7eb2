#include "aha/kernels/rope/rope.h"

#include <vector>

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/rope/rope_loops.h"

namespace aha {

void rotate_heads_ref(int64_t images, int64_t first_token, const float* cos, const float* sin, Heads& heads) {
  const int64_t half = heads.width() / 2;
  for (int64_t b = 0; b < images; ++b)
    for (int64_t h = 0; h < heads.heads(); ++h)
      for (int64_t t = first_token; t < heads.tokens(); ++t) {
        const float* c = cos + (t - first_token) * heads.width();
        const float* s = sin + (t - first_token) * heads.width();
        for (int64_t i = 0; i < half; ++i) {
          const float low = heads.at(b, h, t, i), high = heads.at(b, h, t, i + half);
          heads.set(b, h, t, i, low * c[i] - high * s[i]);
          heads.set(b, h, t, i + half, high * c[i + half] + low * s[i + half]);
        }
      }
}

void rotate_heads(const KernelSet& kernels, int64_t images, int64_t first_token, const float* cos, const float* sin, Heads& heads) {
  if (first_token < 0 || first_token > heads.tokens() || images > heads.images())
    throw input_error("rotary positions: expected at most {} images and {} tokens, found {} and {}", heads.images(), heads.tokens(), images,
                      first_token);
  if (kernels.isa >= Isa::kAvx512 && heads.width() % 32 == 0)
    rotate_heads_avx512(images, first_token, cos, sin, heads);
  else
    rotate_heads_ref(images, first_token, cos, sin, heads);
}

}  // namespace aha
