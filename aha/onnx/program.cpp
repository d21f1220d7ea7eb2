#include "aha/onnx/program.h"

#include <algorithm>
#include <set>

#include "aha/base/error.h"
#include "aha/onnx/fusion.h"

namespace aha {
namespace {

std::string first_line_of(const std::string& text) {
  return printable(text.substr(0, text.find('\n')), 200);
}

}  // namespace

OnnxProgram::OnnxProgram(OnnxGraph graph) : graph_(std::move(graph)), maker_(graph_.values.size(), -1) {
  std::set<std::string> unknown;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!onnx_operator(graph_.nodes[n].op)) unknown.insert(graph_.nodes[n].op);
    for (const int value : graph_.nodes[n].outputs)
      if (value >= 0) maker_[static_cast<size_t>(value)] = static_cast<int>(n);
  }
  if (!unknown.empty())
    throw input_error("{}: {} of its operators are not supported: {} (docs/onnx.md lists those that are)",
                      graph_.file, unknown.size(), list_some(std::vector(unknown.begin(), unknown.end())));
  for (const auto& [value, view] : graph_.constants) constants_.emplace(value, tensor_from_onnx(view));
  graph_.constants.clear();
  one_image_ =
      !graph_.input_shapes.empty() && !graph_.input_shapes[0].empty() && graph_.input_shapes[0][0] == 1;
  fold_constants();
  fuse_layers(graph_, constants_);
  whole_ = plan(graph_.inputs, {graph_.outputs[0]});
}

const OnnxNode* OnnxProgram::maker_of(int value) const {
  const int maker = maker_[static_cast<size_t>(value)];
  return maker < 0 ? nullptr : &graph_.nodes[static_cast<size_t>(maker)];
}

// Nodes that are needed for `wanted` when `given` and the constants are there.
std::vector<OnnxProgram::Step> OnnxProgram::plan(const std::vector<int>& given,
                                                 const std::vector<int>& wanted) const {
  std::vector<bool> there(graph_.values.size(), false), needed(graph_.values.size(), false);
  for (const auto& [value, tensor] : constants_) there[static_cast<size_t>(value)] = true;
  for (const int value : given) there[static_cast<size_t>(value)] = true;
  for (const int value : wanted) needed[static_cast<size_t>(value)] = true;
  std::vector<Step> steps;
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const OnnxNode& node = graph_.nodes[n];
    const bool asked = std::ranges::any_of(node.outputs, [&](int v) {
      return v >= 0 && needed[static_cast<size_t>(v)] && !there[static_cast<size_t>(v)];
    });
    if (!asked) continue;
    const OnnxOperator* fused = fused_operator(node.op);
    Step step{static_cast<int>(n), fused ? fused : onnx_operator(node.op), {}};
    for (const int v : node.inputs) {
      if (v < 0 || needed[static_cast<size_t>(v)]) continue;
      needed[static_cast<size_t>(v)] = true;
      if (!constant(v)) step.last_used.push_back(v);
    }
    steps.push_back(std::move(step));
  }
  std::ranges::reverse(steps);
  return steps;
}

std::vector<int> OnnxProgram::nodes_behind(const std::vector<int>& given) const {
  std::vector<int> nodes;
  for (const auto& step : plan(given, {graph_.outputs[0]})) nodes.push_back(step.node);
  return nodes;
}

bool OnnxProgram::separates(int value) const {
  std::set<int> there = {value};
  for (const auto& step : plan({value}, {graph_.outputs[0]})) {
    const OnnxNode& node = graph_.nodes[static_cast<size_t>(step.node)];
    for (const int v : node.inputs)
      if (v >= 0 && !there.contains(v) && !constant(v)) return false;
    there.insert(node.outputs.begin(), node.outputs.end());
  }
  return there.contains(graph_.outputs[0]);
}

OnnxOutputs OnnxProgram::outputs_of(const OnnxNode& node, const OnnxOperator& op,
                                    const std::vector<Tensor>& values, int64_t batch) const {
  std::vector<Tensor> inputs;
  for (const int v : node.inputs) inputs.push_back(v < 0 ? Tensor() : values[static_cast<size_t>(v)]);
  std::string reason;
  try {
    auto outputs = op.run(OnnxCall(node, std::move(inputs), graph_.opset, batch));
    const auto asked = std::ranges::count_if(node.outputs, [](int v) { return v >= 0; });
    if (std::ssize(outputs) >= asked) return outputs;
    reason = fmt::format("expected {} output, found {} asked for", outputs.size(), asked);
  } catch (const c10::Error& error) {
    reason = first_line_of(error.what_without_backtrace());
  } catch (const Error& error) {
    reason = error.what();
  } catch (const std::runtime_error& error) {
    reason = first_line_of(error.what());
  }
  throw input_error("{}: {} {}: {}", graph_.file, node.op, node.name, reason);
}

void OnnxProgram::execute(const std::vector<Step>& steps, std::vector<Tensor>& values, int64_t batch,
                          const Visitor& visit) const {
  for (const auto& step : steps) {
    const OnnxNode& node = graph_.nodes[static_cast<size_t>(step.node)];
    auto outputs = outputs_of(node, *step.run, values, batch);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] < 0) continue;
      if (visit) visit(node.outputs[i], outputs[i]);
      values[static_cast<size_t>(node.outputs[i])] = std::move(outputs[i]);
    }
    for (const int v : step.last_used) values[static_cast<size_t>(v)] = Tensor();
  }
}

std::vector<Tensor> OnnxProgram::constant_values() const {
  std::vector<Tensor> values(graph_.values.size());
  for (const auto& [value, tensor] : constants_) values[static_cast<size_t>(value)] = tensor;
  return values;
}

// Values whose makers read constants alone become constants, as far as there is room for them. Shapes are
// data of the input and stay.
void OnnxProgram::fold_constants() {
  const torch::NoGradGuard no_grad;
  int64_t room = int64_t{1} << 28;  // numbers
  auto values = constant_values();
  for (const auto& node : graph_.nodes) {
    const bool known = std::ranges::all_of(node.inputs, [&](int v) { return v < 0 || constant(v); });
    if (!known || room <= 0) continue;
    auto outputs = outputs_of(node, *onnx_operator(node.op), values, 0);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (const int v = node.outputs[i]; v >= 0) {
        room -= outputs[i].numel();
        constants_[v] = values[static_cast<size_t>(v)] = std::move(outputs[i]);
      }
  }
}

Tensor OnnxProgram::run(const Tensor& input, const Visitor& visit) const {
  if (graph_.inputs.size() != 1)
    throw input_error("{}: expected a graph with one input, found {}", graph_.file, graph_.inputs.size());
  auto values = constant_values();
  values[static_cast<size_t>(graph_.inputs[0])] = input;
  execute(whole_, values, one_image_ && input.dim() > 0 ? input.size(0) : 0, visit);
  return values[static_cast<size_t>(graph_.outputs[0])];
}

std::vector<Tensor> OnnxProgram::run_all(const std::vector<Tensor>& inputs) const {
  if (inputs.size() != graph_.inputs.size())
    throw input_error("{}: expected {} inputs, found {}", graph_.file, graph_.inputs.size(), inputs.size());
  auto values = constant_values();
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(graph_.inputs[i])] = inputs[i];
  auto steps = plan(graph_.inputs, graph_.outputs);
  for (auto& step : steps)  // an output that another node reads is kept
    std::erase_if(step.last_used,
                  [&](int v) { return std::ranges::find(graph_.outputs, v) != graph_.outputs.end(); });
  execute(steps, values, 0, {});
  std::vector<Tensor> outputs;
  for (const int v : graph_.outputs) outputs.push_back(values[static_cast<size_t>(v)]);
  return outputs;
}

Tensor OnnxProgram::run_from(int value, const Tensor& tensor) const {
  auto values = constant_values();
  values[static_cast<size_t>(value)] = tensor;
  execute(plan({value}, {graph_.outputs[0]}), values, one_image_ ? tensor.size(0) : 0, {});
  return values[static_cast<size_t>(graph_.outputs[0])];
}

}  // namespace aha
