// A freshly loaded network is asked by several threads at once: engines must be there from the start.
#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include "aha/explainer/explainer_catalog.h"
#include "aha/networks/convnext.h"
#include "aha/networks/vit.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

constexpr int kThreads = 8, kRounds = 20;

// Every thread asks at the same moment; the answers of all of them.
std::vector<Tensor> asked_together(const std::function<Tensor()>& ask) {
  std::vector<Tensor> answers(kThreads);
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      answers[t] = ask();
    });
  for (auto& thread : threads) thread.join();
  return answers;
}

template <class Network>
std::string saved(Network network, const std::string& name, int size) {
  network->initialize(1);
  freeze(*network);
  ModelCard card;
  card.input.size = card.input.resize = size;
  card.input.rule = ResizeRule::kStretch;
  card.input.crop = false;
  const auto folder = checks::fresh_folder(name);
  save_classifier(folder, *network, card);
  return folder;
}

Vit vit_for_engine() {
  VitConfig c;
  c.image_size = 32, c.patch = 8, c.width = 64, c.depth = 2, c.heads = 2, c.mlp_hidden = 128, c.classes = 3;
  return Vit(c);
}

ConvNext convnext_for_engine() {
  ConvNextConfig c;
  c.image_size = 32, c.stem_stride = 2, c.depths = {1, 1}, c.widths = {32, 64}, c.classes = 3;
  return ConvNext(c);
}

void expect_one_answer(const std::vector<Tensor>& answers, const Tensor& alone) {
  for (const auto& answer : answers) EXPECT_TRUE(answer.equal(alone));
}

TEST(FreshlyLoaded, ClassifiersAnswerSeveralThreads) {
  const std::string folders[] = {saved(vit_for_engine(), "threads_vit", 32),
                                 saved(convnext_for_engine(), "threads_convnext", 32)};
  const Tensor pixels = torch::rand({1, 3, 32, 32});
  for (const auto& folder : folders) {
    const Tensor alone = load_classifier(folder, {}, Context())->logits(pixels);
    for (int round = 0; round < kRounds; ++round) {
      const auto fresh = load_classifier(folder, {}, Context());
      expect_one_answer(asked_together([&] { return fresh->logits(pixels); }), alone);
    }
  }
}

TEST(FreshlyLoaded, EncodersAnswerSeveralThreads) {
  const std::string folders[] = {saved(vit_for_engine(), "threads_vit_encoder", 32),
                                 saved(convnext_for_engine(), "threads_convnext_encoder", 32)};
  const Tensor pixels = torch::rand({1, 3, 32, 32});
  for (const auto& folder : folders) {
    const Tensor alone = load_encoder(folder, {}, Context())->features(pixels).back();
    for (int round = 0; round < kRounds; ++round) {
      const auto fresh = load_encoder(folder, {}, Context());
      expect_one_answer(asked_together([&] { return fresh->features(pixels).back(); }), alone);
    }
  }
}

}  // namespace
}  // namespace aha
