#include "aha/app/inspect.h"

#include <filesystem>
#include <set>

#include "aha/networks/catalog.h"
#include "aha/networks/exported_classifier.h"
#include "aha/networks/preprocess.h"
#include "aha/networks/torchscript.h"
#include "aha/networks/weight_summary.h"
#include "aha/onnx/operators.h"

namespace aha {
namespace {

class Lines {
 public:
  explicit Lines(const std::string& title) : text_(title + "\n") {}
  void add(std::string_view what, const std::string& value) {
    if (!value.empty()) text_ += fmt::format("  {:<13} {}\n", what, value);
  }
  void tensor(const std::string& name, std::string_view dtype, const std::vector<int64_t>& shape) {
    text_ += fmt::format("    {:<60} {:<5} {}\n", name, dtype, text_from_shape(shape));
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

// The network's weights by content; `spec` is one that load_network() takes.
void add_identity(Inspection& out, Lines& lines, const std::string& spec) {
  const Fingerprint found = fingerprint_of(*load_network(spec).network);
  out.json["identity"] = json_from(found);
  lines.add("identity", found.sha256);
}

Inspection inspect_weights(const std::string& path, const InspectOptions& options) {
  const WeightSummary s = summarize_weights(path);
  nlohmann::json tensors = nlohmann::json::array();
  for (const auto& t : s.tensors)
    tensors.push_back({{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}});
  Inspection out;
  out.json = {{"file", s.path},
              {"architecture", s.architecture},
              {"family", s.family},
              {"source", s.source},
              {"parameters", s.parameters},
              {"values", s.values},
              {"classes", s.classes},
              {"dtypes", s.dtypes},
              {"remark", s.remark},
              {"tensors", tensors}};
  out.json["input"] = s.input ? nlohmann::json(card_json_from_input(*s.input)) : nlohmann::json();
  Lines lines(s.path);
  if (s.family.empty()) {
    lines.add("network", "not recognized: " + s.remark);
  } else {
    lines.add("network", s.architecture.empty() ? s.family + ", of no known size" : s.architecture);
    lines.add("names of", s.source);
    lines.add("parameters", std::to_string(s.parameters));
    if (s.classes > 0) lines.add("classes", std::to_string(s.classes));
    if (s.input) lines.add("input", text_from_input(*s.input));
    if (!s.architecture.empty()) lines.add("use as", fmt::format("--target {}:{}", s.architecture, s.path));
  }
  std::string types;
  for (const auto& [type, count] : s.dtypes)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
  lines.add("tensors", fmt::format("{} ({} values)", types, s.values));
  if (options.identity && !s.architecture.empty()) add_identity(out, lines, s.architecture + ":" + s.path);
  if (options.tensors)
    for (const auto& t : s.tensors) lines.tensor(t.name, t.dtype, t.shape);
  out.text = lines.text();
  return out;
}

Inspection inspect_script(const std::string& path, const ScriptSummary& s) {
  Inspection out;
  out.json = {{"file", path}, {"architecture", "script"}, {"storages", s.storages}, {"bytes", s.bytes}};
  out.json["input"] = s.input ? nlohmann::json(card_json_from_input(*s.input)) : nlohmann::json();
  Lines lines(path);
  lines.add("network", "TorchScript: a program with its weights; using it executes code from the file");
  lines.add("storages", fmt::format("{} ({:.1f} MB)", s.storages, static_cast<double>(s.bytes) / 1e6));
  lines.add("input", s.input ? text_from_input(*s.input)
                             : "not said; --input-size, --mean and --std do, ImageNet's are the default");
  lines.add("use as", "--target script:" + path);
  out.text = lines.text();
  return out;
}

Inspection inspect_onnx(const std::string& path) {
  const OnnxGraph graph = read_onnx_graph(path);
  int64_t values = 0;
  for (const auto& [value, view] : graph.constants) values += view.numel();
  std::set<std::string> operators, missing;
  for (const auto& node : graph.nodes) {
    operators.insert(node.op);
    if (!onnx_operator(node.op)) missing.insert(node.op);
  }
  const auto names = [&](const std::vector<int>& of) {
    std::vector<std::string> list;
    for (const int v : of) list.push_back(printable(graph.values[static_cast<size_t>(v)]));
    return list;
  };
  const auto preprocessing = preprocessing_beside(path);
  Inspection out;
  out.json = {{"file", path},
              {"architecture", "onnx"},
              {"opset", graph.opset},
              {"nodes", graph.nodes.size()},
              {"operators", operators},
              {"not_supported", missing},
              {"values", values},
              {"inputs", names(graph.inputs)},
              {"input_shapes", graph.input_shapes},
              {"outputs", names(graph.outputs)}};
  out.json["input"] =
      preprocessing ? nlohmann::json(card_json_from_input(preprocessing->input)) : nlohmann::json();
  Lines lines(path);
  lines.add("network", fmt::format("ONNX graph, opset {}, {} nodes of {} operators", graph.opset,
                                   graph.nodes.size(), operators.size()));
  lines.add("values", std::to_string(values));
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    lines.add("takes", fmt::format("{} {}", names(graph.inputs)[i], text_from_shape(graph.input_shapes[i])));
  lines.add("gives", fmt::format("{}", fmt::join(names(graph.outputs), ", ")));
  lines.add("input", preprocessing
                         ? text_from_input(preprocessing->input)
                         : "not said; --input-size, --mean and --std do, ImageNet's are the default");
  lines.add("not supported", fmt::format("{}", fmt::join(missing, ", ")));
  if (missing.empty() && graph.inputs.size() == 1) {
    lines.add("runs on",
              "libtorch's operators, with gradients; the fast engine is for networks known by name");
    lines.add("use as", "--target onnx:" + path);
  }
  out.text = lines.text();
  return out;
}

Inspection inspect_model(const std::string& what, const std::string& directory,
                         const InspectOptions& options) {
  const ModelCard card = read_card(directory);
  const TensorTable weights = read_model_weights(directory, card);
  int64_t values = 0;
  for (const auto& [name, view] : weights.tensors) values += view.numel();
  Inspection out;
  out.json = json_from_card(card);
  out.json["directory"] = directory;
  out.json["values"] = values;
  Lines lines(directory);
  lines.add("model", fmt::format("{} ({})", card.kind, card.architecture));
  lines.add("summary", card.summary);
  if (card.target) lines.add("explains", card.target->name);
  if (card.encoder) lines.add("encoder", card.encoder->architecture);
  if (!card.classes.empty()) lines.add("classes", std::to_string(card.classes.size()));
  lines.add("input", text_from_input(card.input));
  lines.add("tensors", fmt::format("{} ({} values)", weights.tensors.size(), values));
  lines.add("sha256", card.sha256);
  if (options.identity && card.kind != "explainer") add_identity(out, lines, what);
  lines.add("use as", fmt::format("--{} {}",
                                  card.kind == "explainer" ? "explainer"
                                  : card.kind == "encoder" ? "encoder"
                                                           : "target",
                                  what));
  if (options.tensors)
    for (const auto& [name, view] : weights.tensors) lines.tensor(name, name_of(view.dtype), view.shape);
  out.text = lines.text();
  return out;
}

}  // namespace

Fields fields(InspectOptions& o) {
  return Fields()
      .add("tensors", o.tensors, "list every tensor")
      .add("identity", o.identity,
           "hash of the weights themselves: the same in every file format and with anyone's names");
}

Inspection inspect(const std::string& what, const InspectOptions& options) {
  if (const auto directory = model_directory(what)) return inspect_model(what, *directory, options);
  if (std::filesystem::is_regular_file(what)) {
    if (const auto script = script_summary(what)) return inspect_script(what, *script);
    if (what.ends_with(".onnx")) return inspect_onnx(what);
    return inspect_weights(what, options);
  }
  const size_t colon = what.find(':');
  if (colon != std::string::npos && std::filesystem::is_regular_file(what.substr(colon + 1)))
    return inspect(what.substr(colon + 1), options);  // as --target has it
  if (what.find('/') != std::string::npos || what.find('.') != std::string::npos)
    return inspect_weights(what, options);  // says what is wrong with the path
  throw unknown_model_error(what);
}

}  // namespace aha
