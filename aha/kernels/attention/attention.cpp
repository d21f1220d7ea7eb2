#include "aha/kernels/attention/attention.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

void check_heads(const KernelSet& kernels, std::string_view what, const Heads& a, const Heads& as,
                 int64_t tokens, int64_t images) {
  if (a.format() != kernels.format || a.images() < images || a.heads() != as.heads() ||
      a.tokens() != tokens || a.width() != as.width())
    throw input_error(
        "attention, {}: expected {} images of {} heads of {} x {} in {}, found {} of {} of {} x {} in {}",
        what, images, as.heads(), tokens, as.width(), name_of(kernels.format), a.images(), a.heads(),
        a.tokens(), a.width(), name_of(a.format()));
}

void check_matrix(const KernelSet& kernels, std::string_view what, const Activations& a, int64_t rows,
                  int64_t column, int64_t columns) {
  if (a.format() != kernels.format || a.rows() < rows || column < 0 || column % kPanel != 0 ||
      column + columns > a.columns())
    throw input_error("attention, {}: expected {} rows with columns {}..{} in {}, found {} x {} in {}", what,
                      rows, column, column + columns - 1, name_of(kernels.format), a.rows(), a.columns(),
                      name_of(a.format()));
}

void check(const KernelSet& kernels, const AttentionInput& in) {
  check_heads(kernels, "queries", *in.q, *in.q, in.q->tokens(), in.images);
  check_heads(kernels, "keys", *in.k, *in.q, in.k->tokens(), in.images);
  check_heads(kernels, "values", *in.v, *in.q, in.k->tokens(), in.images);
}

// Two products of queries x tokens x width, which run at half of a GEMM's speed.
double operations_of(const AttentionInput& in, int64_t heads) {
  return 8.0 * static_cast<double>(heads * in.q->tokens() * in.k->tokens() * in.q->width());
}

}  // namespace

void attention_forward(const KernelSet& kernels, const AttentionInput& in, Activations& out,
                       float* log_sum_exp) {
  check(kernels, in);
  check_matrix(kernels, "result", out, in.images * in.q->tokens(), 0, in.q->columns());
  // A head is cut where workers are as many as heads or nearly so: each part lays out the keys again.
  const int64_t heads = in.q->heads(), all = in.images * heads, queries = in.q->tokens(),
                workers = helpers() + 1, unit = kernels.format == Format::kF32 ? 42 : kPanel,
                units = (queries + unit - 1) / unit,
                parts = workers == 1 || all >= 4 * workers ? 1 : std::min(units, workers);
  shared_ranges(all * parts, 1, operations_of(in, all), [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const int64_t head = i / parts, part = i % parts;
      kernels.attention_forward(in,
                                {head / heads, head % heads, units * part / parts * unit,
                                 std::min(queries, units * (part + 1) / parts * unit)},
                                out, log_sum_exp);
    }
  });
}

void attention_backward(const KernelSet& kernels, const AttentionInput& in, const AttentionGradient& job) {
  check(kernels, in);
  check_heads(kernels, "gradient", *job.dout, *in.q, in.q->tokens(), in.images);
  check_matrix(kernels, "dq", *job.dq, in.images * in.q->tokens(), job.dq_column, in.q->columns());
  check_matrix(kernels, "dk", *job.dk, in.images * in.k->tokens(), job.dk_column, in.q->columns());
  check_matrix(kernels, "dv", *job.dv, in.images * in.k->tokens(), job.dv_column, in.q->columns());
  const int64_t heads = in.q->heads();
  shared_ranges(in.images * heads, 1, 2.5 * operations_of(in, in.images * heads),
                [&](int64_t first, int64_t end) {
                  for (int64_t i = first; i < end; ++i)
                    kernels.attention_backward(in, i / heads, i % heads, job);
                });
}

void attention_weights(const KernelSet& kernels, const AttentionInput& in, const AttentionWeights& job) {
  check(kernels, in);
  if (job.image < 0 || job.image >= in.images || job.queries < 0 || job.queries > in.q->tokens())
    throw input_error(
        "attention, weights: expected an image in 0..{} and at most {} queries, found {} and {}",
        in.images - 1, in.q->tokens(), job.image, job.queries);
  if (job.dout) check_heads(kernels, "gradient", *job.dout, *in.q, in.q->tokens(), in.images);
  shared_ranges(in.q->heads(), 1, operations_of(in, in.q->heads()), [&](int64_t first, int64_t end) {
    for (int64_t head = first; head < end; ++head) kernels.attention_weights(in, head, job);
  });
}

}  // namespace aha
