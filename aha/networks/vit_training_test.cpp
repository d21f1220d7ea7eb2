// A vision transformer that learns, on the fast kernels and on libtorch.
#include <gtest/gtest.h>
#include <torch/nn/functional.h>
#include <torch/optim.h>

#include "aha/tensor/torch.h"

#include "aha/base/parallel.h"
#include "aha/networks/vit.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

VitConfig trained_config() {
  VitConfig c;
  c.image_size = 16;
  c.patch = 4;
  c.width = 64;
  c.depth = 3;
  c.heads = 2;
  c.mlp_hidden = 128;
  c.classes = 5;
  return c;
}

// For many steps: a twelfth of the work where the kernels are the reference's plain loops (AHA_ISA=ref).
VitConfig learning_config() {
  VitConfig c = trained_config();
  if (best_kernel_set(Precision::kF32).isa == Isa::kReference) {
    c.width = 32;
    c.depth = 1;
    c.heads = 1;
    c.mlp_hidden = 64;
  }
  return c;
}

Vit made(const VitConfig& config) {
  Vit network(config);
  network->initialize(3);
  return network;
}

using Forward = Tensor (*)(Vit&, const Tensor&);
Tensor libtorch_logits(Vit& network, const Tensor& x) {
  network->set_precision(std::nullopt);
  return network->forward(x);
}
Tensor fast_logits(Vit& network, const Tensor& x) {
  network->set_precision(Precision::kF32);
  return network->forward(x);
}

struct Learning {
  std::vector<double> losses;
  std::vector<Tensor> weights;
};

// Noise of five brightnesses, one per class: learned within a few steps.
Learning learn(const VitConfig& config, Forward forward, int steps) {
  Vit network = made(config);
  torch::optim::AdamW optimizer(network->parameters(), torch::optim::AdamWOptions(1e-3));
  auto generator = at::make_generator<at::CPUGeneratorImpl>(11);
  Learning learning;
  for (int step = 0; step < steps; ++step) {
    const Tensor labels = torch::randint(0, 5, {20}, generator, torch::kLong);
    const Tensor x = torch::randn({20, 3, 16, 16}, generator) + 0.5 * labels.view({-1, 1, 1, 1});
    const Tensor loss = torch::nn::functional::cross_entropy(forward(network, x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    learning.losses.push_back(loss.item<double>());
  }
  for (const auto& parameter : network->parameters()) learning.weights.push_back(parameter.detach().clone());
  return learning;
}

TEST(VitTraining, AllGradientsEqualLibtorchs) {
  for (const std::string kind : {"plain", "distilled", "dinov3", "dinov3 swiglu"}) {
    SCOPED_TRACE(kind);
    VitConfig config = trained_config();
    config.distilled = kind == "distilled";
    config.layer_scale = kind != "plain";
    config.registers = kind != "plain" ? 2 : 0;
    config.rope = kind.starts_with("dinov3");
    config.swiglu = kind.ends_with("swiglu");
    Vit network = made(config);
    torch::manual_seed(1);
    const Tensor x = torch::randn({6, 3, 16, 16}), upstream = torch::randn({6, 5});
    const auto run = [&](Forward forward) {
      network->zero_grad();
      const Tensor logits = forward(network, x);
      (logits * upstream).sum().backward();
      std::vector<Tensor> results = {logits.detach()};
      for (const auto& parameter : network->parameters()) results.push_back(parameter.grad().clone());
      return results;
    };
    const auto expected = run(libtorch_logits), found = run(fast_logits);
    const auto names = network->named_parameters().keys();
    EXPECT_LT(relative(found[0], expected[0]), 1e-4);
    EXPECT_FALSE(torch::equal(found[0], expected[0])) << "both ran on libtorch";
    for (size_t i = 1; i < expected.size(); ++i)
      EXPECT_LT(relative(found[i], expected[i]), 1e-4) << names[i - 1];
  }
}

TEST(VitTraining, TheLossFollowsLibtorchs) {
  constexpr int kSteps = 30;
  const Learning expected = learn(learning_config(), libtorch_logits, kSteps),
                 found = learn(learning_config(), fast_logits, kSteps);
  // Both begin at the same weights and drift apart as rounding does; a gradient that is wrong anywhere leaves
  // the curve within a few steps, because AdamW normalizes its size away.
  for (int step = 0; step < kSteps; ++step)
    EXPECT_NEAR(found.losses[step], expected.losses[step], 1e-3 * expected.losses[0]) << "step " << step;
  EXPECT_LT(found.losses.back(), 0.8 * found.losses.front());
}

TEST(VitTraining, AnyNumberOfThreadsGivesTheSameWeights) {
  set_threads(1);
  const Learning one = learn(trained_config(), fast_logits, 3);
  set_threads(2);
  const Learning two = learn(trained_config(), fast_logits, 3);
  set_threads(0);
  for (size_t i = 0; i < one.weights.size(); ++i)
    EXPECT_TRUE(torch::equal(two.weights[i], one.weights[i])) << i;
}

}  // namespace
}  // namespace aha
