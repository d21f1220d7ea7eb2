#include "aha/networks/torchscript.h"

#include <torch/script.h>

#include <filesystem>
#include <mutex>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"
#include "aha/base/log.h"
#include "aha/networks/preprocess.h"
#include "aha/nn/module_state.h"

namespace aha {
namespace {

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const c10::optional<Tensor>& mask, double dropout, bool causal, c10::optional<double> scale,
                 bool grouped) {
  if (dropout != 0)
    throw input_error("scaled_dot_product_attention with dropout {}: the file was exported in training mode",
                      dropout);
  const auto repeat = grouped ? query.size(-3) / key.size(-3) : 1;
  const auto k = grouped ? key.repeat_interleave(repeat, -3) : key;
  const auto v = grouped ? value.repeat_interleave(repeat, -3) : value;
  auto scores = torch::matmul(query, k.transpose(-2, -1)) *
                scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  const double never = -std::numeric_limits<double>::infinity();
  if (causal) {
    const auto allowed =
        torch::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(allowed.logical_not(), never);
  }
  if (mask)
    scores =
        mask->scalar_type() == at::kBool ? scores.masked_fill(mask->logical_not(), never) : scores + *mask;
  return torch::matmul(torch::softmax(scores, -1), v);
}

// Files exported by torch 2.x call an operator that 1.13 lacks. Where it is missing it is defined; the
// defaults make the calls of all 2.x versions fit.
void define_missing_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (c10::Dispatcher::singleton().findSchema({"aten::scaled_dot_product_attention", ""})) return;
    static torch::Library library(torch::Library::FRAGMENT, "aten", c10::nullopt, __FILE__, __LINE__);
    library.def(
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
        "dropout_p=0.0, "
        "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
        attention);
  });
}

std::string first_line(const std::string& text) {
  return printable(text.substr(0, text.find('\n')), 200);
}

Tensor tensor_from_output(const c10::IValue& output, const std::string& path) {
  if (output.isTensor()) return output.toTensor();
  if (output.isTuple() && !output.toTupleRef().elements().empty())
    return tensor_from_output(output.toTupleRef().elements()[0], path);
  if (output.isList() && !output.toListRef().empty()) return tensor_from_output(output.toListRef()[0], path);
  if (output.isGenericDict()) {
    std::vector<std::string> keys;
    for (const auto& item : output.toGenericDict()) {
      if (item.key().isString() && item.key().toStringRef() == "logits")
        return tensor_from_output(item.value(), path);
      if (item.key().isString()) keys.push_back(printable(item.key().toStringRef()));
    }
    throw input_error("{}: expected the key logits in the output, found {}", path, list_some(keys));
  }
  throw input_error("{}: expected a tensor, a tuple or a dict as output, found {}", path, output.tagKind());
}

// Smooth, colored, different for each image of the batch.
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

// Multi-threaded sums and the second compilation of the profiling executor change the last digits; dropout
// changes the first.
bool agree(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() &&
         (a - b).abs().max().item<double>() <= 1e-4 * (1 + a.abs().max().item<double>());
}

bool are_probabilities(const Tensor& rows) {
  return rows.min().item<double>() >= 0 && (rows.sum(1) - 1).abs().max().item<double>() < 1e-3;
}

class ScriptClassifier : public Classifier {
 public:
  ScriptClassifier(const torch::jit::Module& module, ClassifierInfo info, const Preprocessing& preprocessing,
                   at::Device device)
      : module_(module) {
    info_ = std::move(info);
    info_.input = preprocessing.input;
    const torch::NoGradGuard no_grad;
    const auto pixels = probe_pixels(2, info_.input.size, device);
    const auto first = raw(pixels.slice(0, 0, 1)), second = raw(pixels.slice(0, 1, 2));
    if (first.dim() != 2 || first.size(0) != 1)
      throw input_error("{}: expected an output of shape [1, classes] for one image, found {}", info_.name,
                        text_from_shape({first.sizes().data(), first.sizes().size()}));
    if (!agree(first, raw(pixels.slice(0, 0, 1))))
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
    probabilities_ = preprocessing.output == "probabilities" ||
                     (preprocessing.output == "auto" && are_probabilities(torch::cat({first, second})));
    batched_ = accepts_batches(pixels, torch::cat({first, second}));
    if (!batched_) spdlog::info("{}: takes one image at a time; batches are run image by image", info_.name);
  }

  Tensor logits(const Tensor& pixels, Taps* taps) override {
    if (taps) taps->check({}, info_.name);
    check_shape(pixels, {-1, 3, info_.input.size, info_.input.size}, "pixels of " + info_.name);
    Tensor out;
    if (batched_) {
      out = raw(pixels);
    } else {
      std::vector<Tensor> rows;
      for (const auto& image : pixels.split(1)) rows.push_back(raw(image));
      out = torch::cat(rows);
    }
    // A probability that is exactly 0 has a finite logarithm here, so that gradients stay finite.
    return probabilities_ ? out.clamp_min(1e-12).log() : out;
  }

 private:
  Tensor raw(const Tensor& pixels) {
    try {
      return tensor_from_output(module_.forward({network_input(pixels, info_.input)}), info_.name);
    } catch (const c10::Error& error) {
      throw input_error("{}: the network does not take images of {} x {} pixels: {}", info_.name,
                        pixels.size(2), pixels.size(3), first_line(error.what_without_backtrace()));
    } catch (const std::runtime_error& error) {
      if (dynamic_cast<const Error*>(&error)) throw;
      throw input_error("{}: the network does not take images of {} x {} pixels: {}", info_.name,
                        pixels.size(2), pixels.size(3), first_line(error.what()));
    }
  }

  bool accepts_batches(const Tensor& pixels, const Tensor& expected) {
    try {
      return agree(expected, raw(pixels));
    } catch (const Error&) {
      return false;  // traced with a fixed batch of one
    }
  }

  torch::jit::Module module_;
  bool probabilities_ = false, batched_ = true;
};

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

}  // namespace

std::unique_ptr<Classifier> load_script_classifier(const std::string& path, const LoadOptions& options,
                                                   const Context& context) {
  define_missing_operators();
  ClassifierInfo info;
  info.name = "script:" + path;
  info.architecture = "script";
  info.sha256 = sha256_of_file(path);  // also says it plainly where the file is missing
  spdlog::warn("{}: a TorchScript file executes its own code; load only files you trust", path);
  torch::jit::ExtraFilesMap extra = {{"preprocess.json", ""}};
  torch::jit::Module module;
  const auto device = torch_device(context);
  try {
    module = torch::jit::load(path, device, extra);
    module.eval();
    for (auto parameter : module.parameters()) parameter.requires_grad_(false);
  } catch (const std::exception& error) {
    throw input_error("{}: not a TorchScript file that this libtorch can read: {}", path,
                      first_line(error.what()));
  }
  for (const auto& item : module.named_parameters()) check_finite(item.value, item.name, path);
  Preprocessing preprocessing;
  if (!extra["preprocess.json"].empty())
    preprocessing = preprocessing_from_json(
        json_from_text(extra["preprocess.json"], path + ": preprocess.json"), path + ": preprocess.json");
  else if (const auto beside = preprocessing_beside(path))
    preprocessing = *beside;
  preprocessing.input = with_overrides(preprocessing.input, options);
  return std::make_unique<ScriptClassifier>(module, std::move(info), preprocessing, device);
}

}  // namespace aha
