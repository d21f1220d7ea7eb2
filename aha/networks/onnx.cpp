#include "aha/networks/onnx.h"

#include <cmath>
#include <map>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/networks/exported_classifier.h"
#include "aha/onnx/program.h"

namespace aha {
namespace {

// Values of a graph that have a name for others.
struct OnnxTaps {
  std::map<int, std::string> names;  // by value
  std::vector<std::string> order;    // as they are computed
  std::vector<std::string> levels;   // finest first
  int features = -1;                 // -1 = none
  int last_tokens = -1;              // of a transformer, before its final norm
  int prefix_tokens = 0;             // 0 = no transformer
  int64_t heads = 0;
};

struct SeenValue {
  int value;
  std::vector<int64_t> shape;
};

// T = prefix + g * g patches with at most four tokens before them; 0 where that is not so.
int prefix_of(int64_t tokens) {
  for (int prefix = 1; prefix <= 4; ++prefix) {
    const auto side = std::llround(std::sqrt(static_cast<double>(tokens - prefix)));
    if (tokens > prefix && side >= 2 && side * side + prefix == tokens) return prefix;
  }
  return 0;
}

class TapFinder {
 public:
  TapFinder(const OnnxProgram& program, const Tensor& x) : program_(program) {
    program_.run(x, [&](int value, Tensor& tensor) { seen_.push_back({value, tensor.sizes().vec()}); });
    for (const auto& node : program_.graph().nodes)
      for (const int v : node.inputs) readers_[v].insert(node.op);
  }

  OnnxTaps find() {
    if (!find_attention()) find_maps();
    return std::move(taps_);
  }

 private:
  bool made_by(int value, const char* op) const {
    const OnnxNode* maker = program_.maker_of(value);
    return maker && maker->op == op;
  }

  // Softmax over (1, heads, T, T) or (heads, T, T), read by a matrix product; T has a class token.
  bool is_attention(const SeenValue& v) const {
    const auto n = v.shape.size();
    return (n == 3 || n == 4) && v.shape[n - 1] == v.shape[n - 2] && prefix_of(v.shape[n - 1]) > 0 &&
           made_by(v.value, "Softmax") && readers_.contains(v.value) &&
           readers_.at(v.value).contains("MatMul");
  }

  // A sum of two tensors of tokens (1, T, D), neither of which is a constant.
  bool is_residual(const SeenValue& v, int64_t tokens) const {
    if (v.shape.size() != 3 || v.shape[0] != 1 || v.shape[1] != tokens || !made_by(v.value, "Add"))
      return false;
    for (const int input : program_.maker_of(v.value)->inputs)
      if (program_.constant(input)) return false;
    return true;
  }

  bool find_attention() {
    std::vector<size_t> found;
    int64_t tokens = 0;
    for (size_t i = 0; i < seen_.size(); ++i)
      if (is_attention(seen_[i]) && (found.empty() || seen_[i].shape.back() == tokens)) {
        found.push_back(i);
        tokens = seen_[i].shape.back();
      }
    if (found.empty()) return false;
    const auto& scores = seen_[found[0]].shape;
    std::vector<int> outputs;  // of the blocks
    for (size_t b = 0; b < found.size(); ++b) {
      const size_t end = b + 1 < found.size() ? found[b + 1] : seen_.size();
      int last = -1;
      for (size_t i = found[b]; i < end; ++i)
        if (is_residual(seen_[i], tokens)) last = seen_[i].value;
      if (last < 0) return false;  // no transformer whose blocks we know
      outputs.push_back(last);
    }
    if (!program_.separates(outputs.back())) return false;
    for (size_t b = 0; b < found.size(); ++b) {
      name(seen_[found[b]].value, fmt::format("block.{}.attention", b));
      name(outputs[b], fmt::format("block.{}", b));
    }
    taps_.heads = scores[scores.size() - 3];
    taps_.prefix_tokens = prefix_of(tokens);
    taps_.last_tokens = outputs.back();
    const size_t n = found.size();  // four levels, evenly spread, the last block among them
    for (size_t level = std::min<size_t>(4, n); level-- > 0;)
      taps_.levels.push_back(fmt::format("block.{}", n - 1 - level * (n / std::min<size_t>(4, n))));
    return true;
  }

  void find_maps() {
    std::map<int64_t, int, std::greater<>> last;  // by side
    for (const auto& v : seen_) {
      if (v.shape.size() != 4 || v.shape[0] != 1 || v.shape[2] != v.shape[3] || v.shape[2] < 2) continue;
      last[v.shape[2]] = v.value;
      if (v.shape[1] > 1) candidates_.push_back(v.value);
    }
    int stage = 0;
    for (const auto& [side, value] : last) {
      name(value, fmt::format("stage.{}", stage));
      taps_.levels.push_back(fmt::format("stage.{}", stage++));
    }
    constexpr size_t kLevels = 4;  // the coarsest
    if (taps_.levels.size() > kLevels) taps_.levels.erase(taps_.levels.begin(), taps_.levels.end() - kLevels);
    for (size_t i = candidates_.size(); i-- > 0;)
      if (program_.separates(candidates_[i])) {
        taps_.features = candidates_[i];
        break;
      }
    if (taps_.features >= 0) taps_.order.emplace_back("features");
  }

  void name(int value, const std::string& text) {
    taps_.names.emplace(value, text);
    taps_.order.push_back(text);
  }

  const OnnxProgram& program_;
  std::vector<SeenValue> seen_;
  std::map<int, std::set<std::string>> readers_;
  std::vector<int> candidates_;
  OnnxTaps taps_;
};

class OnnxClassifier : public ExportedClassifier {
 public:
  OnnxClassifier(OnnxProgram program, ClassifierInfo info, const Preprocessing& preprocessing,
                 at::Device device)
      : program_(std::move(program)) {
    probe(std::move(info), preprocessing, device);
    const torch::NoGradGuard no_grad;
    taps_ = TapFinder(program_, network_input(probe_pixels(1, info_.input.size, device), info_.input)).find();
  }

  std::vector<std::string> tap_names() const override { return taps_.order; }
  std::vector<std::string> default_levels() const override { return taps_.levels; }
  int prefix_tokens() const override { return taps_.prefix_tokens; }

  Tensor logits_from_features(const Tensor& features) override {
    if (taps_.features < 0) return Classifier::logits_from_features(features);
    return logits_from_output(program_.run_from(taps_.features, features));
  }

  Tensor read_out(const Tensor& tokens) override {
    if (taps_.last_tokens < 0) return Classifier::read_out(tokens);
    return logits_from_output(program_.run_from(taps_.last_tokens, tokens));
  }

  Tensor head_weights() const override {
    const OnnxNode* last = program_.maker_of(program_.graph().outputs[0]);
    if (!last || last->op != "Gemm" || !program_.constant(last->inputs[1])) return {};
    const Tensor& weights = program_.constants().at(last->inputs[1]);
    return weights.dim() == 2 && weights.size(0) == info_.classes ? weights : Tensor();
  }

 private:
  Tensor output(const Tensor& x, Taps* taps) override {
    if (!taps) return program_.run(x);
    return program_.run(x, [&](int value, Tensor& tensor) {
      if (value == taps_.features && taps->wants("features")) taps->offer("features", tensor);
      const auto named = taps_.names.find(value);
      if (named == taps_.names.end() || !taps->wants(named->second)) return;
      if (named->second.ends_with(".attention")) {
        // (B * heads, T, T) of some exports is shown as (B, heads, T, T), in the way of the gradient.
        const auto shape = tensor.sizes().vec();
        const auto T = shape.back();
        const Tensor shown = tensor.reshape({-1, taps_.heads, T, T});
        taps->offer(named->second, shown);
        tensor = shown.reshape(shape);
      } else {
        taps->offer(named->second, tensor);
      }
    });
  }

  OnnxProgram program_;
  OnnxTaps taps_;
};

// [N, 3, H, H] of images
void check_image_input(const OnnxGraph& graph) {
  const bool one = graph.inputs.size() == 1;
  const auto shape = one ? graph.input_shapes[0] : std::vector<int64_t>();
  if (!one ||
      (!shape.empty() && (shape.size() != 4 || (shape[1] != 3 && shape[1] > 0) || shape[2] != shape[3])))
    throw input_error("{}: expected one input of images [N, 3, H, H], found {} input(s), the first {}",
                      graph.file, graph.inputs.size(),
                      graph.inputs.empty() ? "missing" : text_from_shape(graph.input_shapes[0]));
}

void check_weights(const OnnxGraph& graph) {
  for (const auto& [value, view] : graph.constants)
    if (const Tensor nan = tensor_from_onnx(view).isnan(); nan.any().item<bool>())
      throw input_error("{}: tensor {} has {} NaN", graph.file,
                        printable(graph.values[static_cast<size_t>(value)]), nan.sum().item<int64_t>());
}

}  // namespace

std::unique_ptr<Classifier> load_onnx_classifier(const std::string& path, const LoadOptions& options,
                                                 const Context& context) {
  if (context.device.cuda)
    throw input_error("onnx:{}: expected --device cpu, found {}", path, text_from_device(context.device));
  ClassifierInfo info;
  info.name = "onnx:" + path;
  info.architecture = "onnx";
  info.sha256 = sha256_of_file(path);  // also says it plainly where the file is missing
  OnnxGraph graph = read_onnx_graph(path);
  check_image_input(graph);
  check_weights(graph);
  const auto beside = preprocessing_beside(path);
  Preprocessing preprocessing = beside.value_or(Preprocessing());
  LoadOptions wanted = options;
  const int64_t side = graph.input_shapes[0].size() == 4 ? graph.input_shapes[0][2] : -1;
  if (side > 0 && wanted.input_size && *wanted.input_size != side)
    throw input_error("{}: --input-size: expected {}, which the file fixes, found {}", info.name, side,
                      *wanted.input_size);
  if (side > 0) wanted.input_size = static_cast<int>(side);
  preprocessing.input = with_overrides(preprocessing.input, wanted);
  if (!beside && !options.mean)
    spdlog::info("{}: no preprocessing file beside it; taken: {} (--mean, --std, --input-size change it)",
                 info.name, text_from_input(preprocessing.input));
  return std::make_unique<OnnxClassifier>(OnnxProgram(std::move(graph)), std::move(info), preprocessing,
                                          torch_device(context));
}

}  // namespace aha
