// An ONNX graph ready to run: operators looked up, whatever depends on no input computed once.
//
//   OnnxProgram program(read_onnx_graph("resnet18.onnx"));
//   Tensor logits = program.run(images);  // differentiable in the images
//
// A graph that was exported for one image is asked about several where its shapes allow it: a leading 1 of a
// reshape becomes the number of images (operators.h, OnnxCall::batch). Whoever uses that has to compare the
// answers of a batch with those of single images, since a 1 may also mean something else. Const after it was
// made: safe from several threads.
#pragma once

#include <functional>

#include "aha/onnx/graph.h"
#include "aha/onnx/operators.h"

namespace aha {

class OnnxProgram {
 public:
  // Input error that lists operators which are not supported.
  explicit OnnxProgram(OnnxGraph graph);

  const OnnxGraph& graph() const { return graph_; }                      // without its weights
  const std::map<int, Tensor>& constants() const { return constants_; }  // by value, computed ones among them

  // Sees values as they are made, in order, and may put another tensor in their place.
  using Visitor = std::function<void(int value, Tensor& tensor)>;
  // Of the first output. The graph must have one input.
  Tensor run(const Tensor& input, const Visitor& visit = {}) const;
  // All outputs, for any number of inputs.
  std::vector<Tensor> run_all(const std::vector<Tensor>& inputs) const;

  // The first output from this value on. Needs separates(value).
  Tensor run_from(int value, const Tensor& tensor) const;
  // Whether the first output depends on the inputs through this value alone.
  bool separates(int value) const;

  // The node that makes a value; null for inputs and constants.
  const OnnxNode* maker_of(int value) const;
  bool constant(int value) const { return constants_.contains(value); }
  // What is still computed for the first output when these values are given, in order.
  std::vector<int> nodes_behind(const std::vector<int>& given) const;

 private:
  struct Step {
    int node;
    const OnnxOperator* run;
    std::vector<int> last_used;  // values that no later step reads
  };
  std::vector<Step> plan(const std::vector<int>& given, const std::vector<int>& wanted) const;
  void execute(const std::vector<Step>& steps, std::vector<Tensor>& values, int64_t batch,
               const Visitor& visit) const;
  OnnxOutputs outputs_of(const OnnxNode& node, const OnnxOperator& op, const std::vector<Tensor>& values,
                         int64_t batch) const;
  void fold_constants();
  std::vector<Tensor> constant_values() const;

  OnnxGraph graph_;
  std::map<int, Tensor> constants_;
  std::vector<int> maker_;  // of each value; -1 = none
  std::vector<Step> whole_;
  bool one_image_ = false;  // exported for a batch of one
};

}  // namespace aha
