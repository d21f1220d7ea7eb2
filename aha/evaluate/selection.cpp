#include "aha/evaluate/selection.h"

#include <algorithm>
#include <numeric>

#include "aha/base/error.h"
#include "aha/data/prefetch.h"
#include "aha/evaluate/image_batch.h"
#include "aha/metrics/score_queue.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

constexpr int64_t kSelectedTogether = 32;

// Takes images one after the other; says why one is left out, or nothing.
struct Chooser {
  const Protocol& protocol;
  const ReferenceOptions& look;
  Classifier& target;
  const Context& context;
  std::map<int64_t, int> of_class = {};
  int64_t taken = 0;

  std::string refuse(const Tensor& pixels, const Tensor& probabilities, int label) {
    const int64_t predicted = probabilities.argmax().item<int64_t>();
    if (protocol.most_images > 0 && taken >= protocol.most_images) return "enough images";
    if (protocol.correct_only && predicted != label) return "not classified correctly";
    if (probabilities[predicted].item<double>() < protocol.least_probability)
      return fmt::format("probability below {}", protocol.least_probability);
    if (protocol.most_per_class > 0 && of_class[predicted] >= protocol.most_per_class)
      return fmt::format("more than {} of a class", protocol.most_per_class);
    if (uses_adaptive_blur(protocol.references, look) &&
        !hiding_blur(target, pixels, predicted, look, context).found)
      return "no blur hides the class";
    ++of_class[predicted], ++taken;
    return "";
  }
};

}  // namespace

Selection select_images(const Protocol& protocol, const ReferenceOptions& look, Classifier& target,
                        const Dataset& data, const InputSpec& input, const Context& context) {
  Selection out;
  if (!protocol.selects()) {
    out.chosen.resize(static_cast<size_t>(data.size()));
    std::iota(out.chosen.begin(), out.chosen.end(), int64_t{0});
    return out;
  }
  const auto read = [&](int64_t i) {
    try {
      return input_from_image(data.image(i), input);
    } catch (const Error&) {
      return Tensor();  // whoever evaluates it says why
    }
  };
  Prefetch<Tensor> images(data.size(), 2, 2 * kSelectedTogether, read);
  Chooser chooser{protocol, look, target, context};
  auto progress = context.progress("select", data.size());
  for (int64_t first = 0; first < data.size(); first += kSelectedTogether) {
    context.cancel->check();
    const int64_t last = std::min(first + kSelectedTogether, data.size());
    std::vector<int64_t> indices;
    std::vector<Tensor> pixels;
    for (int64_t i = first; i < last; ++i) {
      Tensor image = *images.next();
      if (!image.defined()) {
        out.chosen.push_back(i);
        continue;
      }
      indices.push_back(i);
      pixels.push_back(std::move(image));
    }
    progress.advance(last - first);
    if (pixels.empty()) continue;
    const Tensor batch = torch::stack(pixels).to(torch_device(context));
    const Tensor answers = probabilities(target, batch, context);
    for (size_t b = 0; b < indices.size(); ++b) {
      const auto row = static_cast<int64_t>(b);
      const std::string reason = chooser.refuse(batch[row], answers[row], data.label(indices[b]));
      if (reason.empty())
        out.chosen.push_back(indices[b]);
      else
        out.left_out[data.id(indices[b])] = reason;
    }
  }
  std::sort(out.chosen.begin(), out.chosen.end());
  return out;
}

}  // namespace aha
