#include "aha/metrics/score_queue.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

TEST(ScoreQueue, ScoresAreThePlainFormulas) {
  const std::vector<double> logits = {2.0, -1.0, 0.5, 3.0};
  double sum = 0;
  for (const double x : logits) sum += std::exp(x);
  for (int64_t c = 0; c < 4; ++c) {
    const double p = std::exp(logits[c]) / sum;
    EXPECT_NEAR(score_of(logits, c), p, 1e-15);
    EXPECT_EQ(score_of(logits, c, ScoreKind::kLogit), logits[c]);
    EXPECT_NEAR(score_of(logits, c, ScoreKind::kLogOdds), std::log(p / (1 - p)), 1e-12);
    EXPECT_EQ(is_top(logits, c), c == 3);
  }
  // Where a probability is 1 in double, the log-odds still tell classes apart.
  EXPECT_EQ(score_of(std::vector<double>{900, 0}, 0), 1);
  EXPECT_NEAR(score_of(std::vector<double>{900, 0}, 0, ScoreKind::kLogOdds), 900, 1e-9);
  EXPECT_TRUE(is_top(std::vector<double>{1, 1}, 0));
  EXPECT_FALSE(is_top(std::vector<double>{1, 1}, 1));
  EXPECT_EQ(score_kind_from_text("log-odds"), ScoreKind::kLogOdds);
  EXPECT_THROW(score_kind_from_text("odds"), Error);
}

// Large enough for the engine, whose answers do not depend on the batch.
VitClassifier tiny_target() {
  VitConfig config;
  config.image_size = 32, config.patch = 8, config.width = 64, config.depth = 2, config.heads = 1,
  config.mlp_hidden = 128, config.classes = 5;
  Vit network(config);
  network->initialize(1);
  checks::freeze(*network);
  return {network, checks::plain_info("vit", 32), Precision::kF32};
}

// The answers to blends of an image with black, in the order of the questions.
std::vector<std::vector<double>> answers_of(Classifier& target, const Tensor& pixels, int batch_size,
                                            int64_t questions) {
  Context context;
  context.batch_size = batch_size;
  const int64_t side = pixels.size(1);
  ScoreQueue queue(target, side, side, context);
  std::vector<std::vector<double>> out(static_cast<size_t>(questions));
  for (int64_t i = 0; i < questions; ++i) {
    const Tensor keep =
        torch::full({side, side}, static_cast<double>(i) / static_cast<double>(questions - 1));
    queue.ask(blended(pixels, torch::zeros_like(pixels), keep),
              [&out, i](std::span<const double> logits) { out[i].assign(logits.begin(), logits.end()); });
  }
  EXPECT_EQ(queue.asked(), questions);
  queue.flush();
  queue.flush();  // nothing is left
  return out;
}

TEST(ScoreQueue, BatchesAndThreadsDoNotChangeABit) {
  VitClassifier target = tiny_target();
  ASSERT_TRUE(target.engine_memory());
  const Tensor pixels = torch::rand({3, target.info().input.size, target.info().input.size});
  set_threads(1);
  const auto alone = answers_of(target, pixels, 1, 70);
  for (const int threads : {1, 2})
    for (const int batch : {0, 7, 64}) {
      set_threads(threads);
      EXPECT_EQ(answers_of(target, pixels, batch, 70), alone) << threads << " threads, batch " << batch;
    }
  set_threads(0);
  // Both ends are the images themselves.
  const Tensor ends = logits_of(target, torch::stack({torch::zeros_like(pixels), pixels}), Context());
  for (const size_t end : {size_t{0}, size_t{1}})
    for (size_t c = 0; c < alone[0].size(); ++c)
      EXPECT_EQ(alone[end ? 69 : 0][c],
                ends[static_cast<int64_t>(end)][static_cast<int64_t>(c)].item<double>());
}

TEST(ScoreQueue, AnswersComeAsSoonAsABatchIsFull) {
  VitClassifier target = tiny_target();
  Context context;
  context.batch_size = 2;
  const int64_t side = target.info().input.size;
  ScoreQueue queue(target, side, side, context);
  int answered = 0;
  for (int i = 0; i < 3; ++i)
    queue.ask([side](float* to) { std::fill_n(to, 3 * side * side, 0.5f); },
              [&](std::span<const double>) { ++answered; });
  EXPECT_EQ(answered, 2);
  queue.flush();
  EXPECT_EQ(answered, 3);
}

}  // namespace
}  // namespace aha
