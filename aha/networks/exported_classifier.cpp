#include "aha/networks/exported_classifier.h"

#include <filesystem>

#include "aha/base/imagenet_classes.h"
#include "aha/base/log.h"

namespace aha {
namespace {

std::string first_line(const std::string& text) {
  return printable(text.substr(0, text.find('\n')), 200);
}

// Multi-threaded sums and the second compilation of the profiling executor change the last digits; dropout
// changes the first.
bool agree(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() &&
         (a - b).abs().max().item<double>() <= 1e-4 * (1 + a.abs().max().item<double>());
}

bool are_probabilities(const Tensor& rows) {
  return rows.min().item<double>() >= 0 && (rows.sum(1) - 1).abs().max().item<double>() < 1e-3;
}

}  // namespace

Tensor probe_pixels(int64_t B, int size, at::Device device) {
  const auto n = B * 3 * size * size;
  return (torch::arange(n, at::kDouble) * 0.0137)
      .sin()
      .mul_(0.5)
      .add_(0.5)
      .to(at::kFloat)
      .view({B, 3, size, size})
      .to(device);
}

void ExportedClassifier::probe(ClassifierInfo info, const Preprocessing& preprocessing, at::Device device) {
  info_ = std::move(info);
  info_.input = preprocessing.input;
  const torch::NoGradGuard no_grad;
  const auto pixels = probe_pixels(2, info_.input.size, device);
  const auto first = raw(pixels.slice(0, 0, 1), nullptr), second = raw(pixels.slice(0, 1, 2), nullptr);
  if (first.dim() != 2 || first.size(0) != 1)
    throw input_error("{}: expected an output of shape [1, classes] for one image, found {}", info_.name,
                      text_from_shape({first.sizes().data(), first.sizes().size()}));
  if (!first.isfinite().all().item<bool>())
    throw input_error("{}: expected finite answers, found NaN or infinity for a plain image", info_.name);
  if (!agree(first, raw(pixels.slice(0, 0, 1), nullptr)))
    throw input_error(
        "{}: two forwards of one image differ: the file was exported in training mode; export it after "
        "eval()",
        info_.name);
  info_.classes = static_cast<int>(first.size(1));
  if (preprocessing.classes > 0 && preprocessing.classes != info_.classes)
    throw input_error("{}: expected {} classes as its preprocessing says, found {}", info_.name,
                      preprocessing.classes, info_.classes);
  info_.class_names = preprocessing.class_names;
  if (info_.class_names.empty() && info_.classes == 1000) info_.class_names = imagenet_class_names();
  if (static_cast<int>(info_.class_names.size()) != info_.classes) info_.class_names.clear();
  const Tensor alone = torch::cat({first, second});
  probabilities_ =
      preprocessing.output == "probabilities" || (preprocessing.output == "auto" && are_probabilities(alone));
  try {
    batched_ = agree(alone, raw(pixels, nullptr));
  } catch (const Error&) {
    batched_ = false;  // exported for a batch of one
  }
  if (!batched_) spdlog::info("{}: takes one image at a time; batches are run image by image", info_.name);
}

Tensor ExportedClassifier::raw(const Tensor& pixels, Taps* taps) {
  std::string reason;
  try {
    return output(network_input(pixels, info_.input), taps);
  } catch (const c10::Error& error) {
    reason = first_line(error.what_without_backtrace());
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    reason = first_line(error.what());
  }
  throw input_error("{}: the network does not take images of {} x {} pixels: {}", info_.name, pixels.size(2),
                    pixels.size(3), reason);
}

Tensor ExportedClassifier::logits_from_output(const Tensor& output) const {
  // A probability that is exactly 0 has a finite logarithm here, so that gradients stay finite.
  return probabilities_ ? output.clamp_min(1e-12).log() : output;
}

Tensor ExportedClassifier::logits(const Tensor& pixels, Taps* taps) {
  if (taps) taps->check(tap_names(), info_.name);
  check_shape(pixels, {-1, 3, info_.input.size, info_.input.size}, "pixels of " + info_.name);
  if (batched_ || pixels.size(0) == 1) return logits_from_output(raw(pixels, taps));
  if (taps)
    throw input_error("{}: expected one image where its inside is looked at, found {}", info_.name,
                      pixels.size(0));
  std::vector<Tensor> rows;
  for (const auto& image : pixels.split(1)) rows.push_back(raw(image, nullptr));
  return logits_from_output(torch::cat(rows));
}

std::optional<Preprocessing> preprocessing_beside(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path file(path), folder = file.parent_path();
  for (const auto& candidate :
       {fs::path(path + ".preprocess.json"), folder / (file.stem().string() + ".preprocess.json"),
        folder / "preprocess.json", folder / "preprocessor_config.json", folder / "config.json"}) {
    if (!fs::is_regular_file(candidate)) continue;
    const auto json = read_json(candidate.string());
    // A config.json without preprocessing describes something else.
    if (candidate.filename() == "config.json" && !json.contains("pretrained_cfg")) continue;
    return preprocessing_from_json(json, candidate.string());
  }
  return std::nullopt;
}

}  // namespace aha
