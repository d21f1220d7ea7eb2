#include "aha/train/feature_cache.h"

#include "aha/tensor/torch.h"

#include "aha/tensor/one_thread_each.h"

namespace aha {

int64_t ImageFeatures::bytes() const {
  int64_t sum = 0;
  for (const auto& part : {prior, prior_parts})
    if (part.defined()) sum += static_cast<int64_t>(part.nbytes());
  for (const auto& level : levels) sum += static_cast<int64_t>(level.nbytes());
  return sum;
}

FeatureCache::FeatureCache(Classifier& target, Explainer& explainer, int64_t most_bytes)
    : target_(target), explainer_(explainer), most_bytes_(most_bytes) {}

std::vector<ImageFeatures> FeatureCache::of(const std::vector<int64_t>& keys, const Tensor& pixels,
                                            const Tensor& labels) {
  std::vector<ImageFeatures> out(keys.size());
  std::vector<int64_t> missing;
  for (size_t i = 0; i < keys.size(); ++i)
    if (const auto found = kept_.find(keys[i]); found != kept_.end())
      out[i] = found->second;
    else
      missing.push_back(static_cast<int64_t>(i));
  one_thread_each(static_cast<int64_t>(missing.size()), [&](int64_t m) {
    const torch::NoGradGuard no_grad;
    const Tensor one = pixels.narrow(0, missing[m], 1);
    const Tensor classes =
        labels.defined() ? labels.narrow(0, missing[m], 1).to(one.device()) : target_.logits(one).argmax(1);
    const Features features = explainer_.features(one, classes);
    ImageFeatures& image = out[missing[m]];
    for (const auto& level : features.levels) image.levels.push_back(level.contiguous());
    image.prior = features.prior;
    image.prior_parts = features.prior_parts;
    image.explained = classes.item<int64_t>();
  });
  for (const int64_t i : missing)
    if (bytes_ + out[i].bytes() <= most_bytes_ && kept_.emplace(keys[i], out[i]).second)
      bytes_ += out[i].bytes();
  return out;
}

Features joined(std::span<const ImageFeatures> images, int64_t height, int64_t width) {
  const auto rows = [&](const auto& part) {
    std::vector<Tensor> list;
    for (const auto& image : images) list.push_back(part(image));
    return torch::cat(list);
  };
  Features features{{}, height, width, {}, {}};
  for (size_t k = 0; k < images[0].levels.size(); ++k)
    features.levels.push_back(rows([k](const ImageFeatures& image) { return image.levels[k]; }));
  if (images[0].prior.defined())
    features.prior = rows([](const ImageFeatures& image) { return image.prior; });
  if (images[0].prior_parts.defined())
    features.prior_parts = rows([](const ImageFeatures& image) { return image.prior_parts; });
  return features;
}

}  // namespace aha
