// A network of your own, explained by methods that need no more than logits and taps.
//
//   03_add_a_network
//
// What is here makes it a target. To give it a name in `aha models`, weights from files and `aha fit`, put
// the class into aha/networks with a record (NetworkFamily) and add the record to the list in family.cpp:
// docs/adding_a_network.md.
#include <torch/nn/modules/conv.h>

#include "aha/tensor/torch.h"

#include "aha/base/startup.h"
#include "aha/methods/catalog.h"
#include "aha/networks/network_classifier.h"
#include "aha/nn/linear.h"
#include "aha/nn/module_state.h"

namespace {

// logits = fc(mean over H x W of relu(conv(x)))
struct BlobNetImpl : torch::nn::Cloneable<BlobNetImpl>, aha::Network {
  explicit BlobNetImpl(int width) : width(width) { reset(); }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, width, 5).padding(2)));
    fc = register_module("fc", aha::Linear(aha::LinearOptions{width, 2}));
  }

  torch::nn::Module& module() override { return *this; }
  const char* family() const override { return "blobnet"; }
  nlohmann::json config_json() const override { return {{"width", width}}; }
  int classes() const override { return 2; }
  int image_size() const override { return 32; }

  aha::Tensor forward(const aha::Tensor& x, aha::Taps* taps = nullptr) override {
    const aha::Tensor features = torch::relu(conv(x));  // (B, width, H, W)
    if (taps) taps->check(tap_names(), family()), taps->offer("features", features);
    return logits_from_features(features);
  }
  aha::Tensor logits_from_features(const aha::Tensor& features) override {
    return fc(features.mean({2, 3}));  // (B, 2)
  }
  std::vector<std::string> tap_names() const override { return {"features"}; }
  std::vector<std::string> default_levels() const override { return {"features"}; }
  aha::Tensor head_weights() const override { return fc->weight; }
  // A detector of red blobs, not a random network: the first channel sees red, class 0 is its mean.
  void initialize(uint64_t) override {
    const torch::NoGradGuard no_grad;
    conv->weight.zero_();
    conv->bias.zero_();
    conv->weight[0][0].fill_(1.0 / 25), conv->weight[0][1].fill_(-0.5 / 25),
        conv->weight[0][2].fill_(-0.5 / 25);
    fc->weight.zero_();
    fc->weight[0][0] = 10;
  }

  int width;
  torch::nn::Conv2d conv{nullptr};
  aha::Linear fc{nullptr};
};
TORCH_MODULE(BlobNet);

}  // namespace

int main(int, char** argv) try {
  aha::prepare_process(argv);
  aha::Context context;
  aha::start_compute(context);

  BlobNet network(4);
  network->initialize(0);
  aha::freeze(*network);
  aha::ClassifierInfo info;
  info.name = info.architecture = "blobnet";
  info.input.size = 32;
  aha::NetworkClassifier target(network, info);

  auto pixels = torch::full({1, 3, 32, 32}, 0.5);
  pixels[0][0].slice(0, 8, 16).slice(1, 20, 28).fill_(1);  // a red square
  const uint64_t stream = 0;
  for (const char* name : {"gradcam", "ig", "rise"}) {
    const auto map = aha::make_method(name, {target})
                         ->attribute(pixels, torch::tensor({0}), {&stream, 1}, context)
                         .maps[0];  // (32, 32)
    const auto best = map.argmax().item<int64_t>();
    std::printf("%-8s most important pixel: row %d, column %d\n", name, static_cast<int>(best / 32),
                static_cast<int>(best % 32));
    const bool inside = best / 32 >= 6 && best / 32 < 18 && best % 32 >= 18 && best % 32 < 30;
    if (!inside)
      return std::fprintf(stderr, "%s: expected it in the red square, rows 8 to 15, columns 20 to 27\n",
                          name),
             1;
  }
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
