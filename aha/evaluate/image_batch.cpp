#include "aha/evaluate/image_batch.h"

namespace aha {

ImageBatch chosen_images(const ImageBatch& batch, const std::vector<int64_t>& rows) {
  if (static_cast<int64_t>(rows.size()) == batch.size()) return batch;
  ImageBatch out;
  for (const int64_t r : rows) {
    out.index.push_back(batch.index[r]);
    out.images.push_back(batch.images[r]);
    out.annotations.push_back(batch.annotations[r]);
  }
  const auto of = [index = torch::tensor(rows, torch::kInt64)](const Tensor& whole) {
    return whole.defined() ? whole.index_select(0, index.to(whole.device())) : whole;
  };
  out.pixels = of(batch.pixels);
  out.clean = of(batch.clean);
  for (const auto& [name, values] : batch.references) out.references[name] = of(values);
  for (const auto& [name, values] : batch.replaced) out.replaced[name] = of(values);
  for (const auto& [name, values] : batch.classes) out.classes[name] = of(values);
  return out;
}

MetricImages metric_images(const ImageBatch& batch, const std::string& explained) {
  MetricImages out{
      batch.pixels,     batch.classes.at(explained), {}, batch.clean, batch.references, batch.replaced,
      batch.annotations};
  out.streams = image_streams(batch.pixels);
  return out;
}

AdaptiveBlur hiding_blur(Classifier& target, const Tensor& image, int64_t wanted,
                         const ReferenceOptions& options, const Context& context) {
  AdaptiveBlurOptions kernels;
  if (options.kernel_px > 0) kernels.first_px = options.kernel_px;
  kernels.last_px = options.last_kernel_px;
  kernels.threshold = options.hidden_probability;
  const auto probability = [&](const Tensor& blurred) {
    context.cancel->check();
    return probabilities(target, blurred.unsqueeze(0), context)[0][wanted].item<double>();
  };
  const auto& gray = options.gray;
  return adaptive_blur(image, {gray.at(0), gray.at(1), gray.at(2)}, probability, kernels);
}

void ask_target(ImageBatch& batch, Classifier& target, const std::vector<std::string>& references,
                const ReferenceOptions& options, const Context& context) {
  batch.clean = logits_of(target, batch.pixels, context);
  batch.classes["predicted"] = batch.clean.argmax(1);
  for (const auto& name : references) {
    if (uses_adaptive_blur({name}, options)) {
      std::vector<Tensor> blurred;
      for (int64_t b = 0; b < batch.size(); ++b)
        blurred.push_back(hiding_blur(target, batch.pixels[b], batch.classes["predicted"][b].item<int64_t>(),
                                      options, context)
                              .image);
      batch.references[name] = torch::stack(blurred);
    } else {
      batch.references[name] = reference_image(batch.pixels, reference_from_name(name), options);
    }
    batch.replaced[name] = logits_of(target, batch.references[name], context);
  }
  std::vector<int64_t> labels;
  for (const auto& image : batch.images) labels.push_back(image.label);
  batch.classes["truth"] = torch::tensor(labels, torch::kInt64);
}

}  // namespace aha
