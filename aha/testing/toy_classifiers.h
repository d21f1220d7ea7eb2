// Classifiers and images whose true pixel importance is known on paper.
#pragma once

#include "aha/tensor/torch.h"

#include "aha/base/rng.h"
#include "aha/data/dataset.h"
#include "aha/networks/classifier.h"

namespace aha::checks {

// Shows its pixels under the tap "pixels", so that an explainer can have them as features.
class ToyClassifier : public Classifier {
 public:
  ToyClassifier(int size, int classes, std::string name) {
    info_.name = info_.architecture = std::move(name);
    info_.classes = classes;
    info_.sha256 = std::string(64, '0');
    info_.input.size = info_.input.resize = size;
    info_.input.rule = ResizeRule::kNone;
    info_.input.crop = false;
  }
  std::vector<std::string> tap_names() const override { return {"pixels"}; }
  Tensor logits(const Tensor& pixels, Taps* taps = nullptr) override {
    if (taps && taps->wants("pixels")) taps->offer("pixels", pixels);
    return answer(pixels);
  }

 protected:
  virtual Tensor answer(const Tensor& pixels) = 0;
};

// logit_0 = gain * (mean over pixels of w . x - middle), logit_1 = 0. With a black reference a pixel matters
// exactly as much as w . x says.
class LinearToy : public ToyClassifier {
 public:
  explicit LinearToy(int size) : ToyClassifier(size, 2, "linear toy") {}
  Tensor importance(const Tensor& pixels) const { return (pixels * weight_).sum(1); }  // (B, H, W)

 private:
  Tensor answer(const Tensor& pixels) override {
    const Tensor y = 20 * (importance(pixels).mean({1, 2}) - 0.15);  // (B)
    return torch::stack({y, torch::zeros_like(y)}, 1);
  }
  Tensor weight_ = torch::tensor({0.9f, -0.5f, 0.3f}).view({1, 3, 1, 1});
};

// Three colors of square; logit_c counts the pixels of color c. Everything else in an image is gray and says
// nothing.
class PlantedToy : public ToyClassifier {
 public:
  explicit PlantedToy(int size) : ToyClassifier(size, 3, "planted toy") {}

 private:
  Tensor answer(const Tensor& pixels) override {
    std::vector<Tensor> logits;
    for (int c = 0; c < 3; ++c) {
      const Tensor others = (pixels.sum(1) - pixels.select(1, c)) / 2;
      logits.push_back(torch::relu(pixels.select(1, c) - others - 0.2).sum({1, 2}));  // (B)
    }
    return 0.5 * torch::stack(logits, 1);
  }
};

class MemoryDataset : public Dataset {
 public:
  std::string name() const override { return "memory"; }
  int64_t size() const override { return static_cast<int64_t>(images.size()); }
  Image image(int64_t index) const override { return images[index]; }
  int label(int64_t index) const override { return labels[index]; }
  std::string id(int64_t index) const override { return "memory/" + std::to_string(index); }
  std::vector<Image> images;
  std::vector<int> labels;
};

// Colored noise, in cells of 2 x 2 pixels.
inline MemoryDataset noise_images(int64_t count, int size, uint64_t seed) {
  MemoryDataset data;
  for (int64_t i = 0; i < count; ++i) {
    Image image(size, size);
    const Rng rng(seed, static_cast<uint64_t>(i));
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x)
        for (int c = 0; c < 3; ++c)
          image.row(y)[3 * x + c] = static_cast<uint8_t>(
              255 * rng.uniform_at(static_cast<uint64_t>(((y / 2) * size + x / 2) * 3 + c)));
    data.images.push_back(std::move(image));
    data.labels.push_back(0);
  }
  return data;
}

constexpr int kPlantedSide = 6;

struct PlantedImages {
  MemoryDataset data;
  std::vector<std::array<int, 2>> corner;  // y, x of the square
};

// Gray noise with one colored square; the label is its color.
inline PlantedImages planted_images(int64_t count, int size, uint64_t seed) {
  PlantedImages planted;
  for (int64_t i = 0; i < count; ++i) {
    Rng rng(seed, static_cast<uint64_t>(i));
    const int label = static_cast<int>(rng.below(3));
    const int top = static_cast<int>(rng.below(size - kPlantedSide + 1)),
              left = static_cast<int>(rng.below(size - kPlantedSide + 1));
    Image image(size, size);
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        const auto gray = static_cast<uint8_t>(60 + 140 * rng.uniform());
        const bool inside = y >= top && y < top + kPlantedSide && x >= left && x < left + kPlantedSide;
        for (int c = 0; c < 3; ++c) image.row(y)[3 * x + c] = inside ? (c == label ? 220 : 40) : gray;
      }
    planted.data.images.push_back(std::move(image));
    planted.data.labels.push_back(label);
    planted.corner.push_back({top, left});
  }
  return planted;
}

// Share of a map's top pixels (as many as the square has) that lie in the square.
inline double top_share(const Tensor& map, std::array<int, 2> corner) {
  const int64_t W = map.size(1);
  const Tensor top = std::get<1>(map.flatten().topk(kPlantedSide * kPlantedSide));
  int inside = 0;
  for (int64_t i = 0; i < top.numel(); ++i) {
    const int64_t y = top[i].item<int64_t>() / W - corner[0], x = top[i].item<int64_t>() % W - corner[1];
    inside += y >= 0 && y < kPlantedSide && x >= 0 && x < kPlantedSide;
  }
  return static_cast<double>(inside) / (kPlantedSide * kPlantedSide);
}

// All images as one batch, (B, 3, H, W).
inline Tensor pixels_of(const MemoryDataset& data) {
  std::vector<Tensor> rows;
  for (const auto& image : data.images) rows.push_back(tensor_from_image(image));
  return torch::stack(rows);
}

inline std::vector<double> doubles(const Tensor& values) {
  const Tensor flat = values.detach().flatten().to(torch::kFloat64).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace aha::checks
