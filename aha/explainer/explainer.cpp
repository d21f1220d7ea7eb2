#include "aha/explainer/explainer.h"

#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/explainer/prior.h"

namespace aha {

Explainer::Explainer(std::shared_ptr<Encoder> encoder, DecoderOptions options, Classifier* target)
    : encoder_(std::move(encoder)), target_(target), decoder_(std::move(options)) {
  if (encoder_->info().levels.size() != decoder_->options.widths.size())
    throw input_error("explainer: the encoder gives {} levels, the decoder expects {}",
                      encoder_->info().levels.size(), decoder_->options.widths.size());
  add_prior(decoder_->options.prior, decoder_->options.prior_weight);
}

void Explainer::add_prior(const std::string& name, double weight) {
  if (name != "none" && !target_)
    throw input_error("explainer: its prior ({}) is a map of the target; give the target it was trained for",
                      name);
  if (target_) check_prior(name, *target_);
  if (const int parts = decoder_->options.prior_parts;
      parts > 0 && (!target_ || parts != prior_parts(name, *target_)))
    throw input_error("explainer: its decoder expects {} parts of a prior, found {} ({})", parts,
                      target_ ? prior_parts(name, *target_) : 0, name);
  decoder_->options.prior = name;
  decoder_->options.prior_weight = weight;
}

Features Explainer::features(const Tensor& pixels, const Tensor& classes) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels of the explainer");
  const int64_t H = pixels.size(2), W = pixels.size(3);
  const auto& prior = decoder_->options.prior;
  const bool parts = decoder_->options.prior_parts > 0;
  const auto with = [&](std::vector<Tensor> levels, PriorMaps maps) {
    return Features{std::move(levels), H, W, std::move(maps.order), parts ? std::move(maps.parts) : Tensor()};
  };
  if (prior == "none") return with(encoder_->features(pixels), {});
  if (prior == "cam" && shares_forward()) {
    auto both = encoder_->features_and_tap(pixels, feature_tap(*target_));
    return with(std::move(both.levels), cam_prior(*target_, both.tap, classes, H, W));
  }
  if (shares_forward())
    if (const auto both = encoder_->features_and_relevance(pixels, classes, prior_rule(prior)))
      return with(both->levels,
                  {map_of_order(both->values, H, W), parts ? scaled_parts(both->values_by_block) : Tensor()});
  return with(encoder_->features(pixels), prior_maps(prior, *target_, pixels, classes, parts));
}

std::unique_ptr<Explainer> Explainer::on_target(Classifier& other) const {
  const EncoderInfo& info = encoder_->info();
  auto out = std::make_unique<Explainer>(
      info.architecture == "target" ? std::shared_ptr<Encoder>(encoder_from_target(other, info.levels))
                                    : encoder_,
      decoder_->options, &other);
  out->decoder_ = decoder_;
  return out;
}

bool Explainer::shares_forward() const {
  const auto& prior = decoder_->options.prior;
  if (prior == "cam") return encoder_->looks_into(*target_);
  return prior != "none" && encoder_->gives_relevance(*target_);
}

std::shared_ptr<DecoderImpl> Explainer::decoder_copy() {
  std::shared_ptr<DecoderImpl> copy;
  {
    const std::lock_guard lock(spares_->guard);
    if (!spares_->list.empty()) {
      copy = std::move(spares_->list.back());
      spares_->list.pop_back();
    }
  }
  if (copy && copy->top->weight.device() == decoder_->top->weight.device())
    copy->become(*decoder_);
  else
    copy = std::dynamic_pointer_cast<DecoderImpl>(decoder_->clone());
  copy->eval();
  return {copy.get(), [copy, spares = spares_](DecoderImpl*) {
            for (auto& parameter : copy->parameters()) parameter.mutable_grad() = Tensor();
            const std::lock_guard lock(spares->guard);
            spares->list.push_back(copy);
          }};
}

Tensor Explainer::decode(const Features& features, const Tensor& classes) {
  check_shape(classes, {features.levels.at(0).size(0)}, "classes of the explainer");
  return decoder_->forward(features.levels, classes, features.height, features.width, features.prior,
                           features.prior_parts);
}

}  // namespace aha
