// Questions to the target, collected until they fill a batch.
//
// Perturbed images of several maps, references and metrics run together, so that the target always sees full
// batches, whoever asks. Images are written just before their forward pass: memory is that of one batch. An
// answer does not depend on its batch mates.
//
//   ScoreQueue questions(target, 224, 224, context);
//   questions.ask([=](float* to) { ... }, [=](std::span<const double> logits) { ... });
//   questions.flush();  // all answers are in
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "aha/base/context.h"
#include "aha/networks/classifier.h"

namespace aha {

// Logits (C) as logits_of() gives them.
std::span<const double> values_of(const Tensor& logits);

// What the answer for a class is measured as.
enum class ScoreKind {
  kProbability,  // softmax
  kLogit,
  kLogOdds,  // log(p / (1 - p)): the logit minus the log-sum-exp of the other classes
};
ScoreKind score_kind_from_text(const std::string& text);  // "probability", "logit", "log-odds"

double score_of(std::span<const double> logits, int64_t wanted, ScoreKind kind = ScoreKind::kProbability);
// Whether the class is the most probable one; of equals the first counts.
bool is_top(std::span<const double> logits, int64_t wanted);

// Logits and probabilities (B, C) of images (B, 3, H, W), double, on the CPU.
Tensor logits_of(Classifier& target, const Tensor& pixels, const Context& context);
Tensor probabilities(Classifier& target, const Tensor& pixels, const Context& context);

class ScoreQueue {
 public:
  // Writes the whole image (3, H, W); called once, from any thread.
  using Write = std::function<void(float* to)>;
  // Gets the logits (C); called from the thread that asks or flushes.
  using Answer = std::function<void(std::span<const double> logits)>;

  ScoreQueue(Classifier& target, int64_t height, int64_t width, const Context& context);

  void ask(Write write, Answer answer);
  void flush();
  int64_t asked() const { return asked_; }  // so far

 private:
  void run();

  Classifier& target_;
  const Context& context_;
  Tensor batch_;  // (N, 3, H, W)
  std::vector<Write> writes_;
  std::vector<Answer> answers_;
  int64_t asked_ = 0;
};

// reference where keep is 0, pixels where it is 1, a blend between: the image that many metrics ask about.
// pixels, reference (3, H, W), keep (H, W), contiguous float32 on the CPU.
ScoreQueue::Write blended(Tensor pixels, Tensor reference, Tensor keep);

}  // namespace aha
