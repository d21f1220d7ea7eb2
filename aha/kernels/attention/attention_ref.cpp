#include <cmath>
#include <vector>

#include "aha/kernels/sets/kernels_ref.h"

namespace aha {
namespace {

// q k^T of one query
std::vector<double> scores_of(const AttentionInput& input, int64_t image, int64_t head, int64_t query) {
  std::vector<double> scores(input.k->tokens());
  for (int64_t j = 0; j < input.k->tokens(); ++j)
    for (int64_t c = 0; c < input.q->width(); ++c)
      scores[j] += double{input.q->at(image, head, query, c)} * input.k->at(image, head, j, c);
  return scores;
}

}  // namespace

void attention_forward_ref(const AttentionInput& input, const AttentionPart& part, Activations& out,
                           float* log_sum_exp) {
  const int64_t image = part.image, head = part.head, queries = input.q->tokens(), tokens = input.k->tokens(),
                width = input.q->width();
  for (int64_t i = part.first_query; i < part.end_query; ++i) {
    std::vector<double> weights = scores_of(input, image, head, i);
    double highest = weights[0], total = 0;
    for (double score : weights) highest = std::max(highest, score);
    for (double& weight : weights) total += weight = std::exp(weight - highest);
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < tokens; ++j) sum += weights[j] / total * input.v->at(image, head, j, c);
      out.set(image * queries + i, head * width + c, static_cast<float>(sum));
    }
    if (log_sum_exp)
      log_sum_exp[(image * input.q->heads() + head) * queries + i] =
          static_cast<float>(highest + std::log(total));
  }
}

void attention_backward_ref(const AttentionInput& input, int64_t image, int64_t head,
                            const AttentionGradient& job) {
  const Heads &q = *input.q, &k = *input.k, &v = *input.v;
  const int64_t queries = q.tokens(), tokens = k.tokens(), width = q.width();
  std::vector<double> dq(queries * width), dk(tokens * width), dv(tokens * width);
  for (int64_t i = 0; i < queries; ++i) {
    std::vector<double> weights = scores_of(input, image, head, i), d_weights(tokens);
    double mean = 0;
    for (int64_t j = 0; j < tokens; ++j) {
      weights[j] = std::exp(weights[j] - job.log_sum_exp[(image * q.heads() + head) * queries + i]);
      for (int64_t c = 0; c < width; ++c)
        d_weights[j] += double{job.dout->at(image, head, i, c)} * v.at(image, head, j, c);
      mean += weights[j] * d_weights[j];
    }
    for (int64_t j = 0; j < tokens; ++j) {
      const double d_score = weights[j] * (d_weights[j] - mean);
      for (int64_t c = 0; c < width; ++c) {
        dq[i * width + c] += d_score * k.at(image, head, j, c);
        dk[j * width + c] += d_score * q.at(image, head, i, c);
        dv[j * width + c] += weights[j] * job.dout->at(image, head, i, c);
      }
    }
  }
  const auto write = [&](Activations& to, int64_t rows, int64_t column, const std::vector<double>& values) {
    for (int64_t t = 0; t < rows; ++t)
      for (int64_t c = 0; c < width; ++c)
        to.set(image * rows + t, column + head * width + c, static_cast<float>(values[t * width + c]));
  };
  write(*job.dq, queries, job.dq_column, dq);
  write(*job.dk, tokens, job.dk_column, dk);
  write(*job.dv, tokens, job.dv_column, dv);
}

void attention_weights_ref(const AttentionInput& input, int64_t head, const AttentionWeights& job) {
  const Heads &q = *input.q, &v = *input.v;
  const int64_t tokens = v.tokens();
  for (int64_t i = 0; i < job.queries; ++i) {
    const std::vector<double> scores = scores_of(input, job.image, head, i);
    const double log_sum = job.log_sum_exp[(job.image * q.heads() + head) * q.tokens() + i];
    for (int64_t j = 0; j < tokens; ++j) {
      const int64_t at = (head * job.queries + i) * tokens + j;
      job.weights[at] = static_cast<float>(std::exp(scores[j] - log_sum));
      if (!job.dout) continue;
      double sum = 0;
      for (int64_t c = 0; c < q.width(); ++c)
        sum += double{job.dout->at(job.image, head, i, c)} * v.at(job.image, head, j, c);
      job.d_weights[at] = static_cast<float>(sum);
    }
  }
}

}  // namespace aha
