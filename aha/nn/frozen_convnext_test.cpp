#include "aha/nn/frozen_convnext.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/sets/sets_under_test.h"
#include "aha/nn/trainable_testing.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

struct Shape {
  int64_t size, stem_stride;
  std::vector<int64_t> widths, depths;
  int64_t classes;
};

const Shape kSmall = {32, 2, {64, 128, 256}, {1, 2, 1}, 10};         // for 32 x 32 images
const Shape kTiny = {64, 4, {96, 192, 384, 768}, {1, 1, 2, 1}, 33};  // as ConvNeXt-Tiny, less deep
const Shape kOdd = {48, 3, {32, 96}, {2, 1}, 7};                     // lines of 16 and 8, one panel

// Random everything, norms and biases too, so that folding them wrongly shows. The scale of each product
// keeps its rows near one.
FrozenConvNextWeights random_weights(const Shape& shape) {
  torch::manual_seed(3);
  const auto matrix = [](std::vector<int64_t> sizes) {
    const Tensor w = torch::randn(sizes);
    return w / std::sqrt(static_cast<double>(w[0].numel()));
  };
  const auto vector = [](int64_t n, double center) { return center + 0.2 * torch::randn({n}); };
  FrozenConvNextWeights w;
  w.height = w.width = shape.size;
  w.stem_stride = shape.stem_stride;
  w.head_eps = 1e-5;
  w.mean = {0.485, 0.456, 0.406};
  w.std = {0.229, 0.224, 0.225};
  int64_t before = 0;
  for (size_t s = 0; s < shape.widths.size(); ++s) {
    const int64_t D = shape.widths[s];
    FrozenConvNextWeights::Stage stage;
    if (s == 0) {
      w.stem_weight = matrix({D, 3, shape.stem_stride, shape.stem_stride});
      w.stem_bias = vector(D, 0);
      w.stem_norm_weight = vector(D, 1);
      w.stem_norm_bias = vector(D, 0);
    } else {
      stage.norm_weight = vector(before, 1);
      stage.norm_bias = vector(before, 0);
      stage.down_weight = matrix({D, before, 2, 2});
      stage.down_bias = vector(D, 0);
    }
    for (int64_t b = 0; b < shape.depths[s]; ++b)
      stage.blocks.push_back({matrix({D, 1, 7, 7}), vector(D, 0), vector(D, 1), vector(D, 0),
                              matrix({4 * D, D}), vector(4 * D, 0), matrix({D, 4 * D}), vector(D, 0),
                              vector(D, 0.7)});
    w.stages.push_back(std::move(stage));
    before = D;
  }
  w.head_norm_weight = vector(before, 1);
  w.head_norm_bias = vector(before, 0);
  w.head_weight = matrix({shape.classes, before});
  w.head_bias = vector(shape.classes, 0);
  return w;
}

Tensor normalized(const Tensor& rows, const Tensor& weight, const Tensor& bias, double eps) {
  return torch::layer_norm(rows, {rows.size(-1)}, weight.to(torch::kFloat64), bias.to(torch::kFloat64), eps);
}

Tensor channel_normalized(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return normalized(x.permute({0, 2, 3, 1}), weight, bias, eps).permute({0, 3, 1, 2});
}

// The obvious network in float64. features: after the stem and after every stage.
Tensor reference_logits(const FrozenConvNextWeights& w, const Tensor& pixels,
                        std::vector<Tensor>* features = nullptr) {
  const auto d = [](const Tensor& t) { return t.to(torch::kFloat64); };
  const auto three = [](const std::array<double, 3>& v) {
    return torch::tensor({v[0], v[1], v[2]}, torch::kFloat64).view({3, 1, 1});
  };
  Tensor x = (d(pixels) - three(w.mean)) / three(w.std);
  x = channel_normalized(torch::conv2d(x, d(w.stem_weight), d(w.stem_bias), w.stem_stride),
                         w.stem_norm_weight, w.stem_norm_bias, w.eps);
  if (features) features->push_back(x);
  for (const auto& stage : w.stages) {
    if (stage.down_weight.defined())
      x = torch::conv2d(channel_normalized(x, stage.norm_weight, stage.norm_bias, w.eps),
                        d(stage.down_weight), d(stage.down_bias), 2);
    for (const auto& b : stage.blocks) {
      Tensor y = torch::conv2d(x, d(b.dw_weight), d(b.dw_bias), 1, 3, 1, x.size(1))
                     .permute({0, 2, 3, 1});  // (B, h, w, D)
      y = torch::linear(normalized(y, b.norm_weight, b.norm_bias, w.eps), d(b.fc1_weight), d(b.fc1_bias));
      y = y * 0.5 * (1 + torch::erf(y / std::sqrt(2.0)));
      y = torch::linear(y, d(b.fc2_weight), d(b.fc2_bias)) * d(b.gamma);
      x = x + y.permute({0, 3, 1, 2});
    }
    if (features) features->push_back(x);
  }
  return torch::linear(normalized(x.mean({2, 3}), w.head_norm_weight, w.head_norm_bias, w.head_eps),
                       d(w.head_weight), d(w.head_bias));
}

// Rounded products in a row up to the end of `stages` stages: the stem's norm as a diagonal one (the stem
// itself is exact), two a block, one between stages.
int64_t products_up_to(const Shape& shape, size_t stages) {
  int64_t products = 1;
  for (size_t s = 0; s < stages; ++s) products += 2 * shape.depths[s] + (s > 0 ? 1 : 0);
  return products;
}
int64_t products_to_logits(const Shape& shape) {
  return products_up_to(shape, shape.depths.size()) + 1;
}
// The backward pass goes through the same products once more.
int64_t products_to_gradient(const Shape& shape) {
  return 2 * products_to_logits(shape);
}

class FrozenConvNextOn : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  // The reference loops take minutes on the larger networks.
  bool slow() const { return kernels.isa == Isa::kReference; }
  std::vector<Shape> shapes() const {
    return slow() ? std::vector<Shape>{{16, 2, {32, 64}, {1, 1}, 5}}
                  : std::vector<Shape>{kSmall, kTiny, kOdd};
  }
  // The longest sums are those of fc2 and of the patches between stages: four times the width.
  double tolerance(const Shape& shape, int64_t products) const {
    return checks::tolerance_of(kernels.format, products, 4 * shape.widths.back());
  }
};

TEST_P(FrozenConvNextOn, LogitsAndPixelGradientsAreThoseOfTheObviousNetwork) {
  for (const Shape& shape : shapes()) {
    const auto weights = random_weights(shape);
    FrozenConvNext engine(weights, kernels);
    torch::manual_seed(1);
    const Tensor pixels = torch::rand({3, 3, shape.size, shape.size}),
                 direction = torch::randn({3, shape.classes});
    Tensor a = pixels.clone().requires_grad_(), b = pixels.clone().requires_grad_();
    const Tensor expected = reference_logits(weights, a), found = engine.logits(b);
    EXPECT_LT(relative(found, expected), tolerance(shape, products_to_logits(shape))) << shape.size;
    EXPECT_TRUE(torch::equal(engine.logits(pixels), found.detach())) << "with and without a gradient";
    (expected * direction).sum().backward();
    (found * direction).sum().backward();
    EXPECT_LT(relative(b.grad(), a.grad()), tolerance(shape, products_to_gradient(shape))) << shape.size;
  }
}

TEST_P(FrozenConvNextOn, PerturbedScoresAndTheirGradientEqualTheLongWay) {
  constexpr int64_t B = 2, S = 3, K = 9;
  for (const Shape& shape : shapes()) {
    const auto weights = random_weights(shape);
    FrozenConvNext engine(weights, kernels);
    torch::manual_seed(4);
    const int64_t n = shape.size;
    PerturbedImages p;
    p.pixels = torch::rand({B, 3, n, n});
    p.reference = torch::rand({B, 3, n, n});
    const Tensor cell = (torch::arange(n) * 3 / n).to(torch::kLong);
    p.region =
        (cell.unsqueeze(1) * 3 + cell.unsqueeze(0)).to(torch::kInt32);  // a 3 x 3 grid that cuts patches
    p.keep = torch::rand({B, S, K});
    p.classes = torch::tensor({1, 4});

    Tensor keep = p.keep.clone().requires_grad_();
    const Tensor shown = keep.index_select(2, p.region.flatten().to(torch::kLong)).view({B, S, 1, n, n});
    const Tensor images =
        p.reference.unsqueeze(1) + shown * (p.pixels - p.reference).unsqueeze(1);  // (B, S, 3, n, n)
    const Tensor probs = torch::softmax(reference_logits(weights, images.flatten(0, 1)), 1).view({B, S, -1});
    const Tensor expected = probs.gather(2, p.classes.view({B, 1, 1}).expand({B, S, 1})).squeeze(2);
    expected.sum().backward();

    const auto found = engine.perturbed_scores(p, true);
    EXPECT_LT(relative(found.scores, expected), tolerance(shape, products_to_logits(shape)));
    EXPECT_LT(relative(found.gradient, keep.grad()), tolerance(shape, products_to_gradient(shape)));
    EXPECT_TRUE(torch::equal(engine.perturbed_scores(p, false).scores, found.scores));
  }
}

TEST_P(FrozenConvNextOn, AnyThreadsAndAnySplitGiveTheSameBits) {
  const Shape shape = slow() ? Shape{16, 2, {32, 64}, {1, 1}, 5} : kSmall;
  FrozenConvNext engine(random_weights(shape), kernels);
  torch::manual_seed(2);
  const Tensor pixels = torch::rand({5, 3, shape.size, shape.size}),
               direction = torch::randn({5, shape.classes});
  const auto both = [&](int64_t from, int64_t to) {
    Tensor x = pixels.slice(0, from, to).clone().requires_grad_();
    const Tensor logits = engine.logits(x);
    (logits * direction.slice(0, from, to)).sum().backward();
    return std::pair(logits.detach(), x.grad());
  };
  set_threads(1);
  const auto [logits, gradient] = both(0, 5);
  for (int threads : {1, 2}) {
    set_threads(threads);
    const auto again = both(0, 5);
    EXPECT_TRUE(torch::equal(again.first, logits));
    EXPECT_TRUE(torch::equal(again.second, gradient));
    for (int64_t cut : {1, 3}) {
      const auto first = both(0, cut), rest = both(cut, 5);
      EXPECT_TRUE(torch::equal(torch::cat({first.first, rest.first}), logits));
      EXPECT_TRUE(torch::equal(torch::cat({first.second, rest.second}), gradient));
    }
  }
  engine.keep_at_most(0);
  EXPECT_TRUE(torch::equal(both(0, 5).second, gradient)) << "nothing kept for the backward pass";
  set_threads(0);
}

TEST_P(FrozenConvNextOn, FeaturesAreTheResidualStreamAfterStemAndStages) {
  const Shape shape = slow() ? Shape{16, 2, {32, 64}, {1, 1}, 5} : kSmall;
  const auto weights = random_weights(shape);
  FrozenConvNext engine(weights, kernels);
  torch::manual_seed(6);
  const Tensor pixels = torch::rand({3, 3, shape.size, shape.size});
  std::vector<Tensor> expected;
  reference_logits(weights, pixels, &expected);
  const auto found = engine.features_after(pixels, {1, FrozenConvNext::kStem, 0});
  EXPECT_LT(relative(found[0], expected[2]), tolerance(shape, products_up_to(shape, 2)));
  EXPECT_LT(relative(found[1], expected[0]), tolerance(shape, products_up_to(shape, 0)));
  EXPECT_LT(relative(found[2], expected[1]), tolerance(shape, products_up_to(shape, 1)));
  EXPECT_THROW(engine.features_after(pixels, {static_cast<int>(shape.widths.size())}), Error);
}

INSTANTIATE_TEST_SUITE_P(Sets, FrozenConvNextOn, ::testing::ValuesIn(checks::sets_to_test()),
                         checks::set_name);

TEST(FrozenConvNext, RefusesWidthsImagesAndClassesItCannotTake) {
  EXPECT_THROW(FrozenConvNext(random_weights({32, 2, {48, 96}, {1, 1}, 5}), Precision::kF32), Error);
  EXPECT_THROW(FrozenConvNext(random_weights({34, 2, {32, 64}, {1, 1}, 5}), Precision::kF32), Error);
  FrozenConvNext engine(random_weights({16, 2, {32, 64}, {1, 1}, 5}), Precision::kF32);
  EXPECT_THROW(engine.logits(torch::rand({1, 3, 20, 20})), Error);
  const Tensor image = torch::rand({1, 3, 16, 16});
  EXPECT_THROW(engine.perturbed_scores({image, image, torch::zeros({16, 16}, torch::kInt32),
                                        torch::ones({1, 1, 1}), torch::tensor({5})},
                                       false),
               Error);
}

}  // namespace
}  // namespace aha
