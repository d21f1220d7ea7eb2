#include "aha/kernels/rope/rope.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/sets/kernels_ref.h"

namespace aha {

void rotate_heads_ref(int64_t first, int64_t end, const RopeAngles& rope, Heads& heads) {
  const int64_t width = heads.width(), half = width / 2;
  for (int64_t head = first; head < end; ++head)
    for (int64_t t = rope.first_token; t < heads.tokens(); ++t) {
      const int64_t b = head / heads.heads(), h = head % heads.heads();
      const float *c = rope.cos + (t - rope.first_token) * width,
                  *s = rope.sin + (t - rope.first_token) * width;
      for (int64_t i = 0; i < half; ++i) {
        const float low = heads.at(b, h, t, i), high = heads.at(b, h, t, i + half);
        heads.set(b, h, t, i, low * c[i] - high * s[i]);
        heads.set(b, h, t, i + half, high * c[i + half] + low * s[i + half]);
      }
    }
}

void rotate_gradient_ref(int64_t first, int64_t end, const RopeAngles& rope, const RopeGradient& job) {
  const int64_t half = job.width / 2;
  for (int64_t row = first; row < end; ++row)
    for (int64_t h = 0; h < job.heads; ++h) {
      const int64_t t = row % job.tokens - rope.first_token, column = job.column + h * job.width;
      if (t < 0) continue;
      const float *c = rope.cos + t * job.width, *s = rope.sin + t * job.width;
      for (int64_t i = 0; i < half; ++i) {
        const float low = job.gradient->at(row, column + i), high = job.gradient->at(row, column + i + half);
        job.gradient->set(row, column + i, low * c[i] + high * s[i + half]);
        job.gradient->set(row, column + i + half, high * c[i + half] - low * s[i]);
      }
    }
}

namespace {

constexpr double kOfAValue = 16;  // operations: waits for memory

}  // namespace

void rotate_heads(const KernelSet& kernels, int64_t images, const RopeAngles& rope, Heads& heads) {
  if (rope.first_token < 0 || images > heads.images() || heads.format() != kernels.format)
    throw input_error("rotary positions: expected at most {} images in {}, found {} in {}", heads.images(),
                      name_of(kernels.format), images, name_of(heads.format()));
  const int64_t all = images * heads.heads();
  shared_ranges(all, 1, kOfAValue * static_cast<double>(all * heads.tokens() * heads.width()),
                [&](int64_t first, int64_t end) { kernels.rotate_heads(first, end, rope, heads); });
}

void rotate_gradient(const KernelSet& kernels, const RopeAngles& rope, const RopeGradient& job) {
  const Activations& g = *job.gradient;
  if (job.images * job.tokens > g.rows() || job.column + job.heads * job.width > g.columns() ||
      job.column % kPanel != 0 || job.width % kPanel != 0 || g.format() != kernels.format)
    throw input_error(
        "gradient of rotary positions: expected {} heads of {} columns from column {}, all multiples of {}, "
        "within {} x {} in {}, found {}",
        job.heads, job.width, job.column, kPanel, g.rows(), g.columns(), name_of(kernels.format),
        name_of(g.format()));
  const int64_t rows = job.images * job.tokens;
  shared_ranges(rows, 1, kOfAValue * static_cast<double>(rows * job.heads * job.width),
                [&](int64_t first, int64_t end) { kernels.rotate_gradient(first, end, rope, job); });
}

}  // namespace aha
