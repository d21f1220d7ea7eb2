// How far bf16 is from float32 on a real, trained network: on the machine's own bf16 kernels, where it has
// any, and on modeled tiles, which round as tiles do and are slow.
//
// AHA_AGREEMENT_PHOTOS=1000 AHA_AGREEMENT_GRADIENTS=100 models_test --gtest_filter='Bf16*' prints the figures
// of docs/decisions/engine.md.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "aha/image/read.h"
#include "aha/networks/catalog.h"
#include "aha/networks/vit_engine.h"
#include "aha/testing/checks.h"
#include "aha/testing/tile_model.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

int64_t wanted(const char* variable, int64_t otherwise) {
  const char* set = std::getenv(variable);
  return set ? std::atoll(set) : otherwise;
}

std::vector<std::string> photos(int64_t count) {
  const std::string folder = checks::shared_file("imagenet/");
  std::ifstream list(folder + "check.csv");
  std::vector<std::string> files;
  std::string line;
  std::getline(list, line);  // path,label
  while (static_cast<int64_t>(files.size()) < count && std::getline(list, line))
    files.push_back(folder + line.substr(0, line.find(',')));
  return files;
}

// The predicted classes, and the probabilities of `classes` (the predicted ones where not given).
std::pair<Tensor, Tensor> best_classes(FrozenVit& engine, const Tensor& pixels, Tensor classes = {}) {
  const torch::NoGradGuard no_grad;
  const Tensor probs = engine.logits(pixels).softmax(1), best = probs.argmax(1);  // (B, C), (B)
  return {best, probs.gather(1, (classes.defined() ? classes : best).unsqueeze(1)).squeeze(1)};
}

// What the objective asks for: four masks a photo that keep a random half of 14 x 14 regions, softly, before
// black.
PerturbedImages half_removed(const Tensor& pixels, const Tensor& classes) {
  constexpr int64_t kGrid = 14, kMasks = 4;
  const int64_t side = pixels.size(3) / kGrid;
  const Tensor at = torch::arange(pixels.size(3), torch::kInt32).div(side, "floor");
  auto generator = at::make_generator<at::CPUGeneratorImpl>(7);
  return {pixels, torch::zeros_like(pixels),
          (at.unsqueeze(1) * kGrid + at.unsqueeze(0)).to(torch::kInt32).contiguous(),
          torch::rand({pixels.size(0), kMasks, kGrid * kGrid}, generator), classes};
}

// Of the class's logit, by the pixels: (B, 3, H, W).
Tensor pixel_gradient(FrozenVit& engine, const Tensor& pixels, const Tensor& classes) {
  const Tensor x = pixels.clone().requires_grad_();
  return torch::autograd::grad({engine.logits(x).gather(1, classes.unsqueeze(1)).sum()}, {x})[0];
}

struct Bf16Sets : ::testing::TestWithParam<std::string> {
  // Null where this machine has no such set.
  const KernelSet* kernels() const {
    if (GetParam() == "Modeled")
      return present_isa().isa >= Isa::kAvx512 ? &modeled_tile_kernels(Format::kBf16) : nullptr;
    const KernelSet& own = kernel_set(present_isa().isa, Precision::kBf16);
    return own.format == Format::kBf16 ? &own : nullptr;
  }
};
INSTANTIATE_TEST_SUITE_P(Bf16, Bf16Sets, ::testing::Values("Own", "Modeled"),
                         [](const auto& info) { return info.param; });

TEST_P(Bf16Sets, AgreeWithFloat32OnATrainedTransformer) {
  const std::string weights = checks::shared_file("weights/vit_tiny_patch16_224_in1k.safetensors");
  if (!fs::is_regular_file(weights)) GTEST_SKIP() << "no real weights at " << weights;
  if (!kernels()) GTEST_SKIP() << "no such kernels on " << describe_cpu();
  const auto loaded = load_classifier("vit_ti_16:" + weights, {}, Context());
  auto& classifier = dynamic_cast<NetworkClassifier&>(*loaded);
  Vit network(std::dynamic_pointer_cast<VitImpl>(classifier.shared_network()));
  const auto numbers = frozen_weights_from(network, classifier.info().input);
  FrozenVit exact(numbers, kernel_set(present_isa().isa, Precision::kF32)), fast(numbers, *kernels());

  const auto files = photos(wanted("AHA_AGREEMENT_PHOTOS", 40));
  ASSERT_FALSE(files.empty());
  const auto gradients = static_cast<size_t>(wanted("AHA_AGREEMENT_GRADIENTS", 8));
  int64_t agree = 0;
  double difference = 0;
  std::vector<Tensor> cosines, pixel_cosines;
  constexpr size_t kBatch = 20;
  for (size_t first = 0; first < files.size(); first += kBatch) {
    std::vector<Tensor> rows;
    for (size_t i = first; i < std::min(files.size(), first + kBatch); ++i)
      rows.push_back(input_from_image(read_image(files[i]), classifier.info().input));
    const Tensor pixels = torch::stack(rows);
    const auto [classes, probs] = best_classes(exact, pixels);
    const auto [fast_classes, fast_probs] = best_classes(fast, pixels, classes);
    agree += classes.eq(fast_classes).sum().item<int64_t>();
    difference += (probs - fast_probs).abs().sum().item<double>();
    if (first >= gradients) continue;
    const auto removal = half_removed(pixels, classes);
    const Tensor gradient = exact.perturbed_scores(removal, true).gradient;  // (B, S, K)
    const Tensor fast_gradient = fast.perturbed_scores(removal, true).gradient;
    cosines.push_back(torch::cosine_similarity(gradient.flatten(1), fast_gradient.flatten(1), 1));
    pixel_cosines.push_back(torch::cosine_similarity(pixel_gradient(exact, pixels, classes).flatten(1),
                                                     pixel_gradient(fast, pixels, classes).flatten(1), 1));
  }
  const auto n = static_cast<double>(files.size());
  const Tensor cosine = torch::cat(cosines), pixel_cosine = torch::cat(pixel_cosines);
  std::printf(
      "%s against f32 on %.0f photos: the same class %.2f %%, probability off by %.5f on average; of %d "
      "photos the cosine of the mask gradients %.5f on "
      "average, %.5f at least, of the pixel gradients %.5f and %.5f\n",
      std::string(kernels()->name).c_str(), n, 100 * static_cast<double>(agree) / n, difference / n,
      static_cast<int>(cosine.size(0)), cosine.mean().item<double>(), cosine.min().item<double>(),
      pixel_cosine.mean().item<double>(), pixel_cosine.min().item<double>());
  EXPECT_GE(static_cast<double>(agree), 0.99 * n - 1);  // of a few dozen photos one may stand at the border
  EXPECT_LT(difference / n, 0.005);
  EXPECT_GT(pixel_cosine.mean().item<double>(), 0.999);
  EXPECT_GT(cosine.mean().item<double>(),
            0.997);  // 0.9987 on 100 photos, 0.9968 with rounded pixels (docs/decisions/engine.md)
  EXPECT_GT(cosine.min().item<double>(), 0.99);
}

}  // namespace
}  // namespace aha
