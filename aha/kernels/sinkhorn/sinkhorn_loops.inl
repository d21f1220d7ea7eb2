// The body of sinkhorn_avx512.cpp, sinkhorn_avx2.cpp and sinkhorn_portable.cpp: the same loops on vectors as
// wide as the flags allow. Everything is in an unnamed namespace and uses no library template, so that no
// copy leaves its translation unit.

#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "aha/kernels/sinkhorn/sinkhorn_loops.h"

namespace aha {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kLanes = kBytes / 4;

typedef float V __attribute__((vector_size(kBytes), may_alias));
typedef float UnalignedV __attribute__((vector_size(kBytes), may_alias, aligned(4)));
typedef int32_t VI __attribute__((vector_size(kBytes), may_alias));
typedef uint32_t VU __attribute__((vector_size(kBytes), may_alias));
typedef uint64_t VW __attribute__((vector_size(kBytes), may_alias));
typedef double VD __attribute__((vector_size(kBytes), may_alias));

inline V load(const float* p) {
  return *reinterpret_cast<const V*>(p);
}
inline V load_unaligned(const float* p) {
  return *reinterpret_cast<const UnalignedV*>(p);
}
inline void store(float* p, V x) {
  *reinterpret_cast<V*>(p) = x;
}
inline void store_unaligned(float* p, V x) {
  *reinterpret_cast<UnalignedV*>(p) = x;
}
inline V splat(float x) {
  return x - V{};
}
inline VI splat(int32_t x) {
  return x - VI{};
}

inline VI lane_numbers() {
  VI lanes{};
  for (int l = 0; l < kLanes; ++l) lanes[l] = l;
  return lanes;
}
// The first `count` lanes, zeros beyond.
inline V first_lanes(V x, int count) {
  return (V)((VI)x & (lane_numbers() < splat(count)));
}

typedef float V4 __attribute__((vector_size(16)));
typedef float V8 __attribute__((vector_size(32)));

#if defined(__AVX512F__)
inline V8 halves(V x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif defined(__AVX2__)
inline V8 halves(V x) {
  return x;
}
#endif

inline float sum(V x) {
#if defined(__AVX2__)
  const V8 y = halves(x);
  const V4 z = __builtin_shufflevector(y, y, 0, 1, 2, 3) + __builtin_shufflevector(y, y, 4, 5, 6, 7);
#else
  const V4 z = x;
#endif
  return (z[0] + z[1]) + (z[2] + z[3]);
}

// The sums of N vectors, eight at a time by adding and transposing at once: 37 instead of 96 instructions, a
// quarter of a sweep's time at K = 196.
template <int N>
inline void write_sums(const V (&x)[N], float* out) {
  int n = 0;
#if defined(__AVX2__)
#pragma GCC unroll 6
  for (; n + 8 <= N; n += 8) {
    V8 two[4], four[2];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const V8 a = halves(x[n + 2 * k]), b = halves(x[n + 2 * k + 1]);
      two[k] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
               __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const V8 a = two[2 * k], b = two[2 * k + 1];
      four[k] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
                __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    const V8 eight = __builtin_shufflevector(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
                     __builtin_shufflevector(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
    memcpy(out + n, &eight, sizeof eight);
  }
#endif
#pragma GCC unroll 8
  for (; n < N; ++n) out[n] = sum(x[n]);
}

// exp for x <= 88; 0 below -87, where float32 ends. x = n log 2 + r, |r| <= 0.35, and eight terms of the
// series: 1e-7.
inline V exp_of(V x) {
  const V magic =
      splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, which its low bits then hold
  const V rounded = x * 1.44269504f + magic;
  const V n = rounded - magic;
  const V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  V y = splat(1.0f / 5040);
  y = y * r + 1.0f / 720;
  y = y * r + 1.0f / 120;
  y = y * r + 1.0f / 24;
  y = y * r + 1.0f / 6;
  y = y * r + 0.5f;
  y = y * r + 1.0f;
  y = y * r + 1.0f;
  const VU scaled = (VU)y + (((VU)rounded - (VU)magic) << 23);
  return (V)(scaled & (VU)(x > splat(-87.0f)));
}

// log of a positive normal number: x = 2^e m, m in [0.71, 1.42), log m = 2 atanh((m - 1) / (m + 1)); relative
// error 2e-7 also near 1.
inline V log_of(V x) {
  const VI shifted = (VI)x - splat(0x3f3504f3);  // sqrt(1/2)
  const VI e = shifted >> 23;
  const V m = (V)((VI)x - (shifted & splat(static_cast<int32_t>(0xff800000))));
  const V s = (m - 1.0f) / (m + 1.0f), q = s * s;
  V y = splat(2.0f / 9);
  y = y * q + 2.0f / 7;
  y = y * q + 2.0f / 5;
  y = y * q + 2.0f / 3;
  y = y * q + 2.0f;
  return y * s + __builtin_convertvector(e, V) * 0.693147181f;
}

// ---- noise

// The 64-bit products of the lower halves of 64-bit lanes; what the upper halves hold does not matter.
inline VW wide_product(VW a, uint32_t b) {
#if defined(__AVX512F__)
  return (VW)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (VW)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
  return (a & 0xffffffff) * b;
#endif
}

// Philox4x32-10 as Rng::block, for the counters in the lanes of `counter`.
struct PhiloxWords {
  VW word[4];  // in the lower halves
};
inline PhiloxWords philox(VW counter, uint64_t stream, uint64_t seed) {
  VW c0 = counter, c1 = counter >> 32, c2 = VW{} + stream, c3 = VW{} + (stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const VW p0 = wide_product(c0, 0xD2511F53), p1 = wide_product(c2, 0xCD9E8D57);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

void gumbel_row(uint64_t seed, uint64_t stream, int32_t K, int64_t row, float* out) {
  const int32_t blocks = gumbel_blocks(K);
  VW even_lanes{};
  for (int l = 0; l < kLanes / 2; ++l) even_lanes[l] = 2 * l;
  for (int32_t first = 0; first < blocks; first += kLanes) {
    // Even counters in the lower, odd ones in the upper halves: together they are in order.
    const VW counter = even_lanes + static_cast<uint64_t>(row * blocks + first);
    const PhiloxWords even = philox(counter, stream, seed), odd = philox(counter + 1, stream, seed);
    for (int w = 0; w < 4; ++w) {
      const VW bits = ((even.word[w] & 0xffffffff) | (odd.word[w] << 32)) >> 9 & 0x007fffff007fffff;
      const V uniform = (__builtin_convertvector((VI)bits, V) + 0.5f) * 0x1p-23f;
      store_unaligned(out + w * blocks + first, -log_of(-log_of(uniform)));
    }
  }
}

// ---- logits

void logits_of_row(const SinkhornLogits& logits, int32_t i) {
  const double slope = logits.slope[i];
  double* x = logits.x;
  if (logits.noise > 0) {
    gumbel_row(logits.seed, logits.stream, logits.K, i, logits.gumbel);
    for (int32_t j = 0; j < logits.ld; ++j)
      x[j] = slope * logits.position[j] + logits.column[j] + logits.noise * logits.gumbel[j];
  } else {
    for (int32_t j = 0; j < logits.ld; ++j) x[j] = slope * logits.position[j] + logits.column[j];
  }
}

double largest(const double* x, int32_t ld) {
  VD most = *reinterpret_cast<const VD*>(x);
  constexpr int lanes = kBytes / 8;
  for (int32_t j = lanes; j < ld; j += lanes) {
    const VD y = *reinterpret_cast<const VD*>(x + j);
    most = y > most ? y : most;
  }
  double result = most[0];
  for (int l = 1; l < lanes; ++l) result = most[l] > result ? most[l] : result;
  return result;
}

void row_softmax(const SinkhornLogits& logits, float* kernel, double* log_row, float* row_mean,
                 float* column_sum) {
  const int32_t ld = logits.ld;
  memset(column_sum, 0, ld * sizeof(float));
  for (int32_t i = 0; i < logits.K; ++i) {
    float* row = kernel + static_cast<int64_t>(i) * ld;
    logits_of_row(logits, i);
    const double most = largest(logits.x, ld);
    for (int32_t j = 0; j < ld; ++j) row[j] = static_cast<float>(logits.x[j] - most);
    V total{}, total_p{};
    for (int32_t j = 0; j < ld; j += kLanes) {
      const V e = exp_of(load(row + j));
      store(row + j, e);
      total += e;
      total_p += e * load(logits.position32 + j);
    }
    const float row_sum = sum(total);
    row_mean[i] = sum(total_p) / row_sum;
    log_row[i] = most + log(static_cast<double>(row_sum));
    const V scale = splat(1 / row_sum);
    for (int32_t j = 0; j < ld; j += kLanes) {
      const V e = load(row + j) * scale;
      store(row + j, e);
      store(column_sum + j, load(column_sum + j) + e);
    }
  }
}

void column_log_sums(const SinkhornLogits& logits, const double* log_row, double* most, double* log_column) {
  const int32_t ld = logits.ld;
  for (int32_t j = 0; j < ld; ++j) most[j] = -1e301;
  for (int32_t i = 0; i < logits.K; ++i) {
    logits_of_row(logits, i);
    for (int32_t j = 0; j < ld; ++j) {
      const double x = logits.x[j] - log_row[i];
      most[j] = x > most[j] ? x : most[j];
    }
  }
  memset(log_column, 0, ld * sizeof(double));
  for (int32_t i = 0; i < logits.K; ++i) {
    logits_of_row(logits, i);
    for (int32_t j = 0; j < ld; j += kLanes) {
      alignas(64) float e[kLanes];
      for (int l = 0; l < kLanes; ++l) e[l] = static_cast<float>(logits.x[j + l] - log_row[i] - most[j + l]);
      store(e, exp_of(load(e)));
      for (int l = 0; l < kLanes; ++l) log_column[j + l] += e[l];
    }
  }
  for (int32_t j = 0; j < ld; ++j) log_column[j] = j < logits.K ? most[j] + log(log_column[j]) : 0;
}

void build(const SinkhornLogits& logits, const double* log_row, const double* log_column, float* kernel) {
  const int32_t ld = logits.ld;
  for (int32_t i = 0; i < logits.K; ++i) {
    float* row = kernel + static_cast<int64_t>(i) * ld;
    logits_of_row(logits, i);
    for (int32_t j = 0; j < ld; ++j) row[j] = static_cast<float>(logits.x[j] - log_row[i] - log_column[j]);
    for (int32_t j = 0; j < ld; j += kLanes) store(row + j, exp_of(load(row + j)));
  }
}

// ---- dense

// Rows that are swept together while they are in the first-level cache: 8 x 3 KB at K = 784. The reverse
// sweep keeps three sums a row.
constexpr int kRows = 8;
constexpr int kRowsBackward = kLanes == 16 ? 8 : 4;

template <int N>
inline void sweep_rows(const float* rows, int32_t ld, const float* v, float* u, float* column_sum) {
  V dot[N] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const V x = load(v + j);
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) dot[r] += load(rows + static_cast<int64_t>(r) * ld + j) * x;
  }
  float sums[N];
  write_sums(dot, sums);
  for (int r = 0; r < N; ++r) u[r] = 1 / sums[r];
  V scale[N];
  for (int r = 0; r < N; ++r) scale[r] = splat(u[r]);
  for (int32_t j = 0; j < ld; j += kLanes) {
    V even = load(column_sum + j), odd{};
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r)
      (r % 2 ? odd : even) += load(rows + static_cast<int64_t>(r) * ld + j) * scale[r];
    store(column_sum + j, even + odd);
  }
}

bool sweep(const float* kernel, int32_t K, int32_t ld, const float* v, float* u, float* v_next) {
  memset(v_next, 0, ld * sizeof(float));
  int32_t i = 0;
  for (; i + kRows <= K; i += kRows)
    sweep_rows<kRows>(kernel + static_cast<int64_t>(i) * ld, ld, v, u + i, v_next);
  for (; i < K; ++i) sweep_rows<1>(kernel + static_cast<int64_t>(i) * ld, ld, v, u + i, v_next);
  VI bad{};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const VI inside = lane_numbers() < splat(K - j);
    const V x = (V)((VI)(1 / load(v_next + j)) & inside), y = load(u + j);
    store(v_next + j, x);
    const V low = splat(1e-12f), high = splat(1e12f);
    bad |= inside & ~((x >= low) & (x <= high) & (y >= low) & (y <= high));
  }
  int32_t any = 0;
  for (int l = 0; l < kLanes; ++l) any |= bad[l];
  return any == 0;
}

void masks(const float* kernel, int32_t K, int32_t ld, const float* v, const int32_t* ends, int32_t segments,
           float* u, float* masks, float* column_sum) {
  memset(column_sum, 0, ld * sizeof(float));
  for (int32_t i = 0; i < K; ++i) {
    const float* row = kernel + static_cast<int64_t>(i) * ld;
    float before = 0;
    int32_t j = 0;
    for (int32_t s = 0; s < segments; ++s) {
      V dot{};
      for (; j + kLanes <= ends[s]; j += kLanes) dot += load_unaligned(row + j) * load_unaligned(v + j);
      if (j < ends[s]) dot += first_lanes(load_unaligned(row + j) * load_unaligned(v + j), ends[s] - j);
      j = ends[s];
      before += sum(dot);
      if (s + 1 < segments) masks[static_cast<int64_t>(s) * K + i] = before;
    }
    u[i] = 1 / before;
    for (int32_t s = 0; s + 1 < segments; ++s)
      masks[static_cast<int64_t>(s) * K + i] /= before;  // never above one
    const V scale = splat(u[i]);
    for (j = 0; j < ld; j += kLanes)
      store(column_sum + j, load(column_sum + j) + scale * load(row + j) * load(v + j));
  }
}

void masks_backward(const float* kernel, int32_t K, int32_t ld, const float* v, const float* position,
                    const int32_t* ends, int32_t segments, const float* u, const float* mask_grad,
                    float* scratch, float* grad, float* v_grad) {
  float* coefficient = scratch;  // (ld) dP_ij of this row, spread over its segments
  float* plan_grad =
      scratch + ld + 16;  // (segments) the same, one a segment; `coefficient` is written in whole vectors
  float* value = plan_grad + segments;  // (segments) sum of P
  float* slope = value + segments;      // (segments) sum of P p
  memset(v_grad, 0, ld * sizeof(float));
  for (int32_t i = 0; i < K; ++i) {
    const float* row = kernel + static_cast<int64_t>(i) * ld;
    plan_grad[segments - 1] = 0;
    for (int32_t s = segments - 2; s >= 0; --s)
      plan_grad[s] = plan_grad[s + 1] + mask_grad[static_cast<int64_t>(s) * K + i];
    int32_t j = 0, heaviest = 0;
    for (int32_t s = 0; s < segments; ++s) {
      V dot{}, dot_p{};
      for (; j < ends[s]; j += kLanes) {
        const V kv = first_lanes(load_unaligned(row + j) * load_unaligned(v + j), ends[s] - j);
        dot += kv;
        dot_p += kv * load_unaligned(position + j);
      }
      j = ends[s];
      value[s] = sum(dot) * u[i];
      slope[s] = sum(dot_p) * u[i];
      if (value[s] > value[heaviest]) heaviest = s;
    }
    // The closing row normalisation takes the mean out of the row's gradient. Measured from the heaviest
    // segment, so that a nearly hard row keeps the little that is left.
    const float base = plan_grad[heaviest];
    float mean = 0;
    for (int32_t s = 0; s < segments; ++s) mean += (plan_grad[s] - base) * value[s];
    grad[i] = 0;
    j = 0;
    for (int32_t s = 0; s < segments; ++s) {
      const float g = (plan_grad[s] - base) - mean;
      grad[i] += g * slope[s];
      for (; j < ends[s]; j += kLanes) store_unaligned(coefficient + j, splat(g * u[i]));
      j = ends[s];
    }
    for (j = 0; j < ld; j += kLanes)
      store(v_grad + j, load(v_grad + j) + load(coefficient + j) * load(row + j));
  }
}

template <int N>
inline void sweep_rows_backward(const float* rows, int32_t ld, const float* c_grad, const float* c_grad_p,
                                const float* v_p, const float* u, float* grad, float* v_grad) {
  V dot[N] = {}, dot_p[N] = {}, mean[N] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const V c = load(c_grad + j), cp = load(c_grad_p + j), vp = load(v_p + j);
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) {
      const V k = load(rows + static_cast<int64_t>(r) * ld + j);
      dot[r] += k * c;
      dot_p[r] += k * cp;
      mean[r] += k * vp;
    }
  }
  float sums[N], sums_p[N], means[N], r_grad[N];
  write_sums(dot, sums);
  write_sums(dot_p, sums_p);
  write_sums(mean, means);
  for (int r = 0; r < N; ++r) {
    r_grad[r] = -sums[r] * u[r] * u[r];
    grad[r] += u[r] * sums_p[r] + r_grad[r] * means[r];
  }
  V scale[N];
  for (int r = 0; r < N; ++r) scale[r] = splat(r_grad[r]);
  for (int32_t j = 0; j < ld; j += kLanes) {
    V even = load(v_grad + j), odd{};
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r)
      (r % 2 ? odd : even) += load(rows + static_cast<int64_t>(r) * ld + j) * scale[r];
    store(v_grad + j, even + odd);
  }
}

void sweep_backward(const float* kernel, int32_t K, int32_t ld, const float* v_scale, const float* u,
                    const float* v, const float* position, float* scratch, float* grad, float* v_grad) {
  float *c_grad = scratch, *c_grad_p = scratch + ld, *v_p = scratch + 2 * ld;
  for (int32_t j = 0; j < ld; j += kLanes) {
    const V c = -load(v_grad + j) * load(v_scale + j), p = load(position + j);
    store(c_grad + j, c);
    store(c_grad_p + j, c * p);
    store(v_p + j, load(v + j) * p);
    store(v_grad + j, V{});
  }
  int32_t i = 0;
  for (; i + kRowsBackward <= K; i += kRowsBackward)
    sweep_rows_backward<kRowsBackward>(kernel + static_cast<int64_t>(i) * ld, ld, c_grad, c_grad_p, v_p,
                                       u + i, grad + i, v_grad);
  for (; i < K; ++i)
    sweep_rows_backward<1>(kernel + static_cast<int64_t>(i) * ld, ld, c_grad, c_grad_p, v_p, u + i, grad + i,
                           v_grad);
}

void first_backward(const float* kernel, int32_t K, int32_t ld, const float* v_scale, const float* position,
                    const float* row_mean, const float* v_grad, float* grad) {
  for (int32_t i = 0; i < K; ++i) {
    const float* row = kernel + static_cast<int64_t>(i) * ld;
    const V mean = splat(row_mean[i]);
    V dot{};
    for (int32_t j = 0; j < ld; j += kLanes)
      dot += load(row + j) * load(v_grad + j) * load(v_scale + j) * (mean - load(position + j));
    grad[i] += sum(dot);
  }
}

// ---- low rank

void low_rank_rows(const double* slope, const double* most, int32_t K, int32_t ld, const double* nodes,
                   const double* column, int32_t rank, float* factor) {
  for (int32_t n = 0; n < rank; ++n) {
    float* row = factor + static_cast<int64_t>(n) * ld;
    for (int32_t i = 0; i < K; ++i) row[i] = static_cast<float>(slope[i] * nodes[n] + column[n] - most[i]);
    for (int32_t i = 0; i < ld; i += kLanes) store(row + i, first_lanes(exp_of(load(row + i)), K - i));
  }
}

template <int R>
inline V combination(const float* F, int32_t ld, const float* m) {
  V even{}, odd{};
#pragma GCC unroll 48
  for (int n = 0; n < R; ++n) (n % 2 ? odd : even) += load_unaligned(F + static_cast<int64_t>(n) * ld) * m[n];
  return even + odd;
}

template <int R>
inline void add_products(const float* F, int32_t ld, V w, V (&sums)[R]) {
#pragma GCC unroll 48
  for (int n = 0; n < R; ++n) sums[n] += load_unaligned(F + static_cast<int64_t>(n) * ld) * w;
}

template <int R>
void half_step(const float* F, int32_t K, int32_t ld, const float* m, float* out, float* next) {
  V sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const V w = first_lanes(1 / combination<R>(F + j, ld, m), K - j);
    store(out + j, w);
    add_products(F + j, ld, w, sums);
  }
  write_sums(sums, next);
}

template <int R>
void combine(const float* F, int32_t ld, int32_t begin, int32_t end, const float* m, float* out) {
  for (int32_t j = begin; j < end; j += kLanes) store_unaligned(out + j, combination<R>(F + j, ld, m));
}

template <int R>
void moments(const float* F, int32_t ld, int32_t begin, int32_t end, const float* w, float* m) {
  V sums[R] = {};
  for (int32_t j = begin; j < end; j += kLanes)
    add_products(F + j, ld, first_lanes(load_unaligned(w + j), end - j), sums);
  write_sums(sums, m);
}

template <int R>
void low_rank_masks_backward(const float* F, int32_t ld, const float* nodes, const float* m,
                             const float* coefficient, float* value, float* slope, float* back) {
  float node_m[R];
  for (int n = 0; n < R; ++n) node_m[n] = nodes[n] * m[n];
  V sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const V c = load(coefficient + j);
    store(value + j, load(value + j) + c * combination<R>(F + j, ld, m));
    store(slope + j, load(slope + j) + c * combination<R>(F + j, ld, node_m));
    add_products(F + j, ld, c, sums);
  }
  write_sums(sums, back);
}

template <int R>
void rows_backward(const float* F, int32_t ld, const float* nodes, const float* u, const float* m_v,
                   const float* m_grad, float* grad, float* back) {
  float node_grad[R], node_v[R];
  for (int n = 0; n < R; ++n) {
    node_grad[n] = nodes[n] * m_grad[n];
    node_v[n] = nodes[n] * m_v[n];
  }
  V sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    V dot{}, dot_p{}, mean{};
#pragma GCC unroll 48
    for (int n = 0; n < R; ++n) {
      const V f = load(F + static_cast<int64_t>(n) * ld + j);
      dot += f * m_grad[n];
      dot_p += f * node_grad[n];
      mean += f * node_v[n];
    }
    const V x = load(u + j), r_grad = -dot * x * x;
    store(grad + j, load(grad + j) + x * dot_p + r_grad * mean);
    add_products(F + j, ld, r_grad, sums);
  }
  write_sums(sums, back);
}

template <int R>
void columns_backward(const float* F, int32_t ld, const float* v, const float* back, float* m_grad) {
  V sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const V x = load(v + j);
    add_products(F + j, ld, -combination<R>(F + j, ld, back) * x * x, sums);
  }
  write_sums(sums, m_grad);
}

template <int R>
constexpr LowRankLoops low_rank_loops(double steepest) {
  return {R,
          steepest,
          half_step<R>,
          combine<R>,
          moments<R>,
          low_rank_masks_backward<R>,
          rows_backward<R>,
          columns_backward<R>};
}

// Steepness at which Chebyshev interpolation of exp(b x - g x^2), 0 <= g <= b / 2, |x| <= 1, loses 3e-8 of
// its largest value.
constexpr LowRankLoops kLowRank[] = {low_rank_loops<12>(1.0),   low_rank_loops<16>(3.25),
                                     low_rank_loops<20>(6.75),  low_rank_loops<24>(11.5),
                                     low_rank_loops<32>(24.25), low_rank_loops<48>(63.0)};

constexpr SinkhornLoops loops_of(Isa isa) {
  return {isa,
          gumbel_row,
          row_softmax,
          column_log_sums,
          build,
          sweep,
          masks,
          masks_backward,
          sweep_backward,
          first_backward,
          low_rank_rows,
          kLowRank,
          sizeof kLowRank / sizeof *kLowRank};
}

}  // namespace
}  // namespace aha
