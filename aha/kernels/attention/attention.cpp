#include "aha/kernels/attention/attention.h"

#include "aha/base/error.h"
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

}  // namespace

void attention_forward(const KernelSet& kernels, const AttentionInput& in, Activations& out,
                       float* log_sum_exp) {
  check(kernels, in);
  check_matrix(kernels, "result", out, in.images * in.q->tokens(), 0, in.q->columns());
  kernels.attention_forward(in, out, log_sum_exp);
}

void attention_backward(const KernelSet& kernels, const AttentionInput& in, const AttentionGradient& job) {
  check(kernels, in);
  check_heads(kernels, "gradient", *job.dout, *in.q, in.q->tokens(), in.images);
  check_matrix(kernels, "dq", *job.dq, in.images * in.q->tokens(), job.dq_column, in.q->columns());
  check_matrix(kernels, "dk", *job.dk, in.images * in.k->tokens(), job.dk_column, in.q->columns());
  check_matrix(kernels, "dv", *job.dv, in.images * in.k->tokens(), job.dv_column, in.q->columns());
  kernels.attention_backward(in, job);
}

void attention_weights(const KernelSet& kernels, const AttentionInput& in, const AttentionWeights& job) {
  check(kernels, in);
  if (job.image < 0 || job.image >= in.images || job.queries < 0 || job.queries > in.q->tokens())
    throw input_error(
        "attention, weights: expected an image in 0..{} and at most {} queries, found {} and {}",
        in.images - 1, in.q->tokens(), job.image, job.queries);
  if (job.dout) check_heads(kernels, "gradient", *job.dout, *in.q, in.q->tokens(), in.images);
  kernels.attention_weights(in, job);
}

}  // namespace aha
