#include "aha/app/classify.h"

#include "aha/app/input_batches.h"
#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/base/timer.h"
#include "aha/image/read.h"
#include "aha/networks/class_names.h"

namespace aha {
namespace {

// consume(the batch, probabilities (B, C)) of `count` images; those are undefined where B = 0.
void run_batches(Classifier& target, const InputBatches& inputs, const Context& context,
                 const std::function<void(const InputBatch&, const Tensor&)>& consume) {
  const torch::NoGradGuard no_grad;
  for_input_batches(inputs, target.info().input, context, [&](const InputBatch& batch) {
    consume(batch, batch.indices.empty() ? Tensor()
                                         : torch::softmax(target.logits(batch.pixels), 1).to(torch::kCPU));
  });
}

int64_t batch_of(const Context& context) {
  return context.batch_size > 0 ? context.batch_size : 16;
}

}  // namespace

std::vector<ChosenClass> top_classes(const Tensor& probs, int topk, const ClassifierInfo& target,
                                     const std::string& image) {
  const auto [values, indices] = probs.topk(std::min<int64_t>(topk, probs.size(0)));  // (k) each
  std::vector<ChosenClass> classes;
  for (int64_t k = 0; k < values.size(0); ++k) {
    const auto probability = values[k].item<double>();
    if (!std::isfinite(probability))
      throw work_error("{}: the target gives no finite probability for {}", target.name, image);
    classes.push_back(class_at(static_cast<int>(indices[k].item<int64_t>()), probability, target));
  }
  return classes;
}

void classify(Classifier& target, const std::vector<std::string>& images, int topk, bool strict,
              const std::function<void(const Classified&)>& each, const Context& context) {
  const auto& info = target.info();
  const InputBatches inputs{"classify", std::ssize(images), batch_of(context),
                            [&](int64_t i) { return read_image(images[i]); }, strict || images.size() == 1};
  run_batches(target, inputs, context, [&](const InputBatch& batch, const Tensor& probs) {
    std::map<int64_t, Classified> done;
    for (const auto& [i, reason] : batch.failures) {
      tell_failure(images[i], reason);
      done[i] = {images[i], {}, reason};
    }
    for (size_t b = 0; b < batch.indices.size(); ++b) {
      const std::string& image = images[batch.indices[b]];
      done[batch.indices[b]] = {image, top_classes(probs[static_cast<int64_t>(b)], topk, info, image)};
    }
    for (const auto& [i, result] : done) each(result);
  });
}

Accuracy accuracy(Classifier& target, const Dataset& data, bool strict, const Context& context) {
  Accuracy result;
  const std::vector<int> classes = classes_of_labels(data.class_names(), data.name(), target.info());
  const auto label_of = [&](int64_t i) {
    const int label = data.label(i);
    return classes.empty() || label < 0 ? label : classes.at(static_cast<size_t>(label));
  };
  for (int64_t i = 0; i < data.size(); ++i)
    if (label_of(i) < 0 || label_of(i) >= target.info().classes)
      throw input_error("{}: {} has {}, but {} knows classes 0..{}", data.name(), data.id(i),
                        label_of(i) < 0 ? std::string("no label") : fmt::format("label {}", label_of(i)),
                        target.info().name, target.info().classes - 1);
  const Timer timer;
  int64_t top1 = 0, top5 = 0;
  const InputBatches inputs{"classify", data.size(), batch_of(context),
                            [&](int64_t i) { return data.image(i); }, strict || data.size() == 1};
  run_batches(target, inputs, context, [&](const InputBatch& batch, const Tensor& probs) {
    for (const auto& [i, reason] : batch.failures) {
      tell_failure(data.id(i), reason);
      result.failures.emplace_back(data.id(i), reason);
    }
    for (size_t b = 0; b < batch.indices.size(); ++b) {
      const Tensor best =
          std::get<1>(probs[static_cast<int64_t>(b)].topk(std::min<int64_t>(5, probs.size(1))));  // (5)
      for (int64_t k = 0; k < best.size(0); ++k)
        if (best[k].item<int64_t>() == label_of(batch.indices[b])) {
          top5 += 1;
          top1 += k == 0;
        }
    }
    result.images += std::ssize(batch.indices);
  });
  if (result.images == 0) throw input_error("{}", result.failures.at(0).second);
  const auto n = static_cast<double>(result.images);
  result.top1 = static_cast<double>(top1) / n;
  result.top5 = static_cast<double>(top5) / n;
  result.images_per_second = n / timer.seconds();
  return result;
}

}  // namespace aha
