// What ONNX nodes compute, on libtorch and with its gradients: one record for each operator (operators.cpp
// has the list), each following the ONNX specification from the version that exporters still write to
// opset 20.
#pragma once

#include <optional>
#include <span>

#include "aha/onnx/graph.h"
#include "aha/tensor/tensor.h"

namespace aha {

// One node with its inputs.
class OnnxCall {
 public:
  OnnxCall(const OnnxNode& node, std::vector<Tensor> inputs, int opset, int64_t batch)
      : node(node), inputs(std::move(inputs)), opset(opset), batch(batch) {}

  const OnnxNode& node;
  std::vector<Tensor> inputs;  // undefined = left out
  int opset;
  int64_t batch;  // of images, in a graph that was exported for one; 0 = the graph takes any number

  bool has(size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  const Tensor& in(size_t i) const;           // input error where it is missing
  std::vector<int64_t> ints(size_t i) const;  // of an input: a shape, axes
  double number(size_t i) const;              // of an input with one element

  bool has(const char* attribute) const { return node.attributes.contains(attribute); }
  int64_t integer(const char* attribute, int64_t otherwise) const;
  double real(const char* attribute, double otherwise) const;
  std::string text(const char* attribute, const std::string& otherwise) const;
  std::vector<int64_t> ints(const char* attribute, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> reals(const char* attribute) const;
  std::optional<Tensor> tensor(const char* attribute) const;

  // The attribute of old versions, or the input that replaced it; nothing where neither is there.
  std::optional<std::vector<int64_t>> ints(const char* attribute, size_t input) const;

  // "relu.onnx: Conv conv1"-like start of messages is added by whoever runs the node.
  [[noreturn]] void refuse(const std::string& what) const;
};

// A tensor of a file; numbers of 16 bits become float32, in which a graph is computed.
Tensor tensor_from_onnx(const TensorView& view);

using OnnxOutputs = std::vector<Tensor>;
struct OnnxOperator {
  const char* name;
  OnnxOutputs (*run)(const OnnxCall&);
};

// By name; null = not supported.
const OnnxOperator* onnx_operator(const std::string& name);
std::vector<std::string> onnx_operator_names();

// The groups that the list is made of.
std::span<const OnnxOperator> elementwise_operators();
std::span<const OnnxOperator> layer_operators();
std::span<const OnnxOperator> reduction_operators();
std::span<const OnnxOperator> shape_operators();

// Memory of a result that a few bytes of a file can ask for is bounded: input error above 2^28 numbers.
void check_onnx_size(const OnnxCall& call, const std::vector<int64_t>& shape);

}  // namespace aha
