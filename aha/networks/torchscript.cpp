#include "aha/networks/torchscript.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/script.h>

#include <mutex>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/networks/exported_classifier.h"
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

std::string first_line_of_script(const std::string& text) {
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

class ScriptClassifier : public ExportedClassifier {
 public:
  ScriptClassifier(const torch::jit::Module& module, ClassifierInfo info, const Preprocessing& preprocessing,
                   at::Device device)
      : module_(module) {
    probe(std::move(info), preprocessing, device);
  }

 private:
  Tensor output(const Tensor& x, Taps*) override {
    return tensor_from_output(module_.forward({x}), info_.name);
  }

  torch::jit::Module module_;
};

}  // namespace

std::optional<ScriptSummary> script_summary(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return std::nullopt;
  ScriptSummary summary;
  std::optional<Preprocessing> preprocessing;
  try {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    if (bytes.size() < 2 || bytes[0] != std::byte{'P'} || bytes[1] != std::byte{'K'}) return std::nullopt;
    summary.bytes = std::ssize(bytes);
    caffe2::serialize::PyTorchStreamReader archive(path);
    if (!archive.hasRecord("constants.pkl")) return std::nullopt;
    for (const auto& record : archive.getAllRecords()) summary.storages += record.starts_with("data/");
    if (archive.hasRecord("extra/preprocess.json")) {
      const auto [data, size] = archive.getRecord("extra/preprocess.json");
      preprocessing = preprocessing_from_json(
          json_from_text({static_cast<const char*>(data.get()), size}, path + ": preprocess.json"),
          path + ": preprocess.json");
    }
  } catch (const std::exception&) {
    return std::nullopt;  // whoever loads it says what is wrong
  }
  if (!preprocessing) preprocessing = preprocessing_beside(path);
  if (preprocessing) summary.input = preprocessing->input;
  return summary;
}

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
                      first_line_of_script(error.what()));
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
