#include "aha/onnx/fusion.h"

#include <cmath>
#include <numbers>

namespace aha {
namespace {

OnnxOutputs fused_silu(const OnnxCall& c) {
  return {torch::silu(c.in(0))};
}

OnnxOutputs fused_linear(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  if (x.dim() < 2) return {torch::matmul(x, c.in(1)) + c.in(2)};
  auto shape = x.sizes().vec();
  shape.back() = c.in(1).size(1);
  return {torch::addmm(c.in(2), x.reshape({-1, x.size(-1)}), c.in(1)).view(shape)};
}

constexpr OnnxOperator kFusedOperators[] = {{"fused Silu", fused_silu}, {"fused Linear", fused_linear}};

class LayerFuser {
 public:
  LayerFuser(OnnxGraph& graph, const std::map<int, Tensor>& constants)
      : graph_(graph),
        constants_(constants),
        maker_(graph.values.size(), nullptr),
        readers_(graph.values.size()),
        kept_(graph.values.size(), false) {
    for (auto& node : graph_.nodes) {
      for (const int v : node.outputs)
        if (v >= 0) maker_[static_cast<size_t>(v)] = &node;
      for (const int v : node.inputs)
        if (v >= 0) readers_[static_cast<size_t>(v)].push_back(&node);
    }
    for (const int v : graph_.outputs) kept_[static_cast<size_t>(v)] = true;
  }

  void fuse() {
    for (auto& node : graph_.nodes) {
      if (node.inputs.empty()) continue;
      if (node.op == "Erf") fuse_gelu(node);
      if (node.op == "Sqrt") fuse_layer_norm(node);
      if (node.op == "Sigmoid") fuse_silu(node);
      if (node.op == "MatMul") fuse_linear(node);
    }
  }

 private:
  OnnxNode* maker(int value, const char* op) const {
    OnnxNode* node = value < 0 ? nullptr : maker_[static_cast<size_t>(value)];
    return node && node->op == op && node->outputs.size() == 1 ? node : nullptr;
  }
  // The one node that reads this one's result, if it is of this kind.
  OnnxNode* reader(const OnnxNode& node, const char* op) const {
    if (node.outputs.size() != 1 || node.outputs[0] < 0) return nullptr;
    const auto v = static_cast<size_t>(node.outputs[0]);
    return !kept_[v] && readers_[v].size() == 1 && readers_[v][0]->op == op ? readers_[v][0] : nullptr;
  }
  static int other(const OnnxNode& node, int input) {  // of two inputs
    if (node.inputs.size() != 2) return -1;
    return node.inputs[0] == input ? node.inputs[1] : node.inputs[0];
  }
  const Tensor* constant(int value) const {
    const auto found = constants_.find(value);
    return found == constants_.end() ? nullptr : &found->second;
  }
  bool is_number(int value, double expected) const {
    const Tensor* found = constant(value);
    return found && found->numel() == 1 && std::abs(found->item<double>() - expected) < 1e-4 * expected;
  }
  // x of x * number, or -1
  int scaled_by(const OnnxNode& node, double number) const {
    if (node.op != "Mul" || node.inputs.size() != 2) return -1;
    if (is_number(node.inputs[1], number)) return node.inputs[0];
    return is_number(node.inputs[0], number) ? node.inputs[1] : -1;
  }

  static void become(OnnxNode& node, const char* op, std::vector<int> inputs,
                     std::map<std::string, OnnxAttribute> attributes = {}) {
    node.op = op;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
  }

  void fuse_gelu(const OnnxNode& erf) {
    const OnnxNode* divided = maker(erf.inputs[0], "Div");
    const OnnxNode* multiplied = maker(erf.inputs[0], "Mul");
    int x = -1;
    if (divided && divided->inputs.size() == 2 && is_number(divided->inputs[1], std::numbers::sqrt2))
      x = divided->inputs[0];
    if (multiplied) x = scaled_by(*multiplied, 1 / std::numbers::sqrt2);
    const OnnxNode* plus = reader(erf, "Add");
    if (x < 0 || !plus || !is_number(other(*plus, erf.outputs[0]), 1)) return;
    OnnxNode* product = reader(*plus, "Mul");
    if (!product) return;
    const int factor = other(*product, plus->outputs[0]);
    if (factor == x) {
      OnnxNode* half = reader(*product, "Mul");
      if (half && scaled_by(*half, 0.5) == product->outputs[0]) become(*half, "Gelu", {x});
    } else if (const OnnxNode* half = maker(factor, "Mul"); half && scaled_by(*half, 0.5) == x) {
      become(*product, "Gelu", {x});
    }
  }

  // x of the mean of x over the last axis, or -1
  int mean_of(int value) const {
    const OnnxNode* mean = maker(value, "ReduceMean");
    if (!mean || mean->inputs.empty()) return -1;
    const OnnxCall call(
        *mean,
        {Tensor(),
         mean->inputs.size() > 1 && constant(mean->inputs[1]) ? *constant(mean->inputs[1]) : Tensor()},
        graph_.opset, 0);
    const auto axes = call.ints("axes", 1);
    return axes && *axes == std::vector<int64_t>{-1} && call.integer("keepdims", 1) == 1 ? mean->inputs[0]
                                                                                         : -1;
  }
  // x of x - mean(x), or -1
  int centered(int value) const {
    const OnnxNode* minus = maker(value, "Sub");
    if (!minus || minus->inputs.size() != 2) return -1;
    return mean_of(minus->inputs[1]) == minus->inputs[0] ? minus->inputs[0] : -1;
  }
  // d of d^2, or -1
  int squared(int value) const {
    if (const OnnxNode* power = maker(value, "Pow"))
      return power->inputs.size() == 2 && is_number(power->inputs[1], 2) ? power->inputs[0] : -1;
    const OnnxNode* product = maker(value, "Mul");
    return product && product->inputs.size() == 2 && product->inputs[0] == product->inputs[1]
               ? product->inputs[0]
               : -1;
  }

  void fuse_layer_norm(const OnnxNode& root) {
    const OnnxNode* sum = maker(root.inputs[0], "Add");
    OnnxNode* quotient = reader(root, "Div");
    if (!sum || sum->inputs.size() != 2 || !quotient || quotient->inputs.size() != 2 ||
        quotient->inputs[1] != root.outputs[0])
      return;
    const bool eps_first = constant(sum->inputs[0]) != nullptr;
    const Tensor* eps = constant(sum->inputs[eps_first ? 0 : 1]);
    const int square = mean_of(sum->inputs[eps_first ? 1 : 0]);
    const int deviation = square < 0 ? -1 : squared(square);
    const int x = deviation < 0 ? -1 : centered(deviation);
    if (!eps || eps->numel() != 1 || x < 0 || centered(quotient->inputs[0]) != x) return;
    OnnxNode* scaled = reader(*quotient, "Mul");
    OnnxNode* moved = scaled ? reader(*scaled, "Add") : nullptr;
    if (!moved) return;
    const int weight = other(*scaled, quotient->outputs[0]), bias = other(*moved, scaled->outputs[0]);
    const Tensor *w = constant(weight), *b = constant(bias);
    if (!w || !b || w->dim() != 1 || b->dim() != 1 || w->sizes() != b->sizes()) return;
    become(*moved, "LayerNormalization", {x, weight, bias},
           {{"axis", int64_t{-1}}, {"epsilon", eps->item<double>()}});
  }

  void fuse_silu(const OnnxNode& sigmoid) {
    OnnxNode* product = reader(sigmoid, "Mul");
    if (product && other(*product, sigmoid.outputs[0]) == sigmoid.inputs[0])
      become(*product, "fused Silu", {sigmoid.inputs[0]});
  }

  void fuse_linear(const OnnxNode& product) {
    OnnxNode* sum = reader(product, "Add");
    if (!sum || product.inputs.size() != 2) return;
    const int bias = other(*sum, product.outputs[0]);
    const Tensor *w = constant(product.inputs[1]), *b = constant(bias);
    if (w && b && w->dim() == 2 && b->dim() == 1 && b->size(0) == w->size(1) && w->is_floating_point() &&
        w->scalar_type() == b->scalar_type())
      become(*sum, "fused Linear", {product.inputs[0], product.inputs[1], bias});
  }

  OnnxGraph& graph_;
  const std::map<int, Tensor>& constants_;
  std::vector<OnnxNode*> maker_;
  std::vector<std::vector<OnnxNode*>> readers_;
  std::vector<bool> kept_;  // outputs of the graph
};

}  // namespace

void fuse_layers(OnnxGraph& graph, const std::map<int, Tensor>& constants) {
  LayerFuser(graph, constants).fuse();
}

const OnnxOperator* fused_operator(const std::string& name) {
  for (const auto& one : kFusedOperators)
    if (name == one.name) return &one;
  return nullptr;
}

}  // namespace aha
