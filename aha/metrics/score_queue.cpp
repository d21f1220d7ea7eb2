#include "aha/metrics/score_queue.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "aha/base/error.h"
#include "aha/base/parallel.h"

namespace aha {
namespace {

const std::vector<std::string>& score_kinds() {
  static const std::vector<std::string> names = {"probability", "logit", "log-odds"};
  return names;
}

// Images of a batch: 32 of 224 pixels are 19 MB, and of 32 pixels 128 run as fast as any more.
constexpr int64_t kMostImages = 128, kFewestImages = 32,
                  kBatchFloats = int64_t{3} * 224 * 224 * kFewestImages;

int64_t batch_images(int64_t height, int64_t width, const Context& context) {
  if (context.batch_size > 0) return context.batch_size;
  return std::clamp(kBatchFloats / (3 * height * width), kFewestImages, kMostImages);
}

Tensor on_cpu(const Tensor& logits) {
  return logits.to(torch::kCPU, torch::kFloat64).contiguous();
}

}  // namespace

std::span<const double> values_of(const Tensor& logits) {
  check_shape(logits, {-1}, "logits");
  return {logits.data_ptr<double>(), static_cast<size_t>(logits.numel())};
}

ScoreKind score_kind_from_text(const std::string& text) {
  for (size_t i = 0; i < score_kinds().size(); ++i)
    if (text == score_kinds()[i]) return static_cast<ScoreKind>(i);
  throw unknown_name_error("score", text, score_kinds());
}

double score_of(std::span<const double> logits, int64_t wanted, ScoreKind kind) {
  const double own = logits[wanted];
  if (kind == ScoreKind::kLogit) return own;
  // Log-odds by the highest of the others: they stay finite where the probability is 1 in double.
  const bool with_own = kind == ScoreKind::kProbability;
  double highest = -std::numeric_limits<double>::infinity(), others = 0;
  for (size_t c = 0; c < logits.size(); ++c)
    if (with_own || static_cast<int64_t>(c) != wanted) highest = std::max(highest, logits[c]);
  for (size_t c = 0; c < logits.size(); ++c)
    if (static_cast<int64_t>(c) != wanted) others += std::exp(logits[c] - highest);
  if (!with_own) return own - highest - std::log(others);
  const double mine = std::exp(own - highest);
  return mine / (mine + others);
}

bool is_top(std::span<const double> logits, int64_t wanted) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin() == wanted;
}

ScoreQueue::ScoreQueue(Classifier& target, int64_t height, int64_t width, const Context& context)
    : target_(target),
      context_(context),
      batch_(torch::empty({batch_images(height, width, context), 3, height, width})) {}

void ScoreQueue::ask(Write write, Answer answer) {
  writes_.push_back(std::move(write));
  answers_.push_back(std::move(answer));
  ++asked_;
  if (std::ssize(writes_) == batch_.size(0)) run();
}

void ScoreQueue::flush() {
  if (!writes_.empty()) run();
}

void ScoreQueue::run() {
  context_.cancel->check();
  const torch::NoGradGuard no_grad;
  const int64_t count = std::ssize(writes_), image = batch_.stride(0);
  parallel_for(count, [&](int64_t i, int) { writes_[i](batch_.data_ptr<float>() + i * image); });
  const Tensor logits =
      on_cpu(target_.logits(batch_.narrow(0, 0, count).to(torch_device(context_))));  // (count, C)
  const auto answers = std::exchange(answers_, {});
  writes_.clear();
  const auto classes = static_cast<size_t>(logits.size(1));
  for (int64_t i = 0; i < count; ++i)
    answers[i]({logits.data_ptr<double>() + static_cast<size_t>(i) * classes, classes});
}

Tensor logits_of(Classifier& target, const Tensor& pixels, const Context& context) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> parts;
  for (const auto& chunk : pixels.split(batch_images(pixels.size(2), pixels.size(3), context)))
    parts.push_back(on_cpu(target.logits(chunk)));
  return torch::cat(parts);
}

Tensor probabilities(Classifier& target, const Tensor& pixels, const Context& context) {
  return torch::softmax(logits_of(target, pixels, context), 1);
}

ScoreQueue::Write blended(Tensor pixels, Tensor reference, Tensor keep) {
  return [=](float* to) {
    const int64_t count = keep.numel();
    const float* k = keep.data_ptr<float>();
    for (int c = 0; c < 3; ++c) {
      const float *from = pixels.data_ptr<float>() + c * count,
                  *other = reference.data_ptr<float>() + c * count;
      for (int64_t i = 0; i < count; ++i)  // exact at both ends
        to[c * count + i] = k[i] == 1   ? from[i]
                            : k[i] == 0 ? other[i]
                                        : other[i] + k[i] * (from[i] - other[i]);
    }
  };
}

}  // namespace aha
