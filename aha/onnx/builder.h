// Writes an ONNX graph node by node. Every value knows its shape; the number of images is free.
//
//   OnnxBuilder g({.opset = 17});
//   const OnnxValue image = g.input("image", {-1, 3, 32, 32});
//   g.output("logits", g.linear(g.mean(image, {2, 3}), {"fc", weight, bias}));
//   g.save("FILE.onnx");
//
// Operators of opset 13 to 17: what an opset lacks (LayerNormalization before 17, GELU) is written out. Nodes
// and weights that no output needs are left out of the file. The ONNX project's checker reads what is saved.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aha/tensor/tensor.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace aha {

struct OnnxBuilderOptions {
  int opset = 17;     // 13 to 17
  bool half = false;  // weights stored in 16 bits; computed in float32
};

struct OnnxValue {
  std::string name;
  std::vector<int64_t> shape;  // -1 = the number of images, which comes first

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t size(int64_t axis) const { return shape.at(static_cast<size_t>(axis < 0 ? axis + rank() : axis)); }
};

// A layer's tensors with the name they have in the file: NAME.weight, NAME.bias.
struct OnnxLayer {
  std::string name;
  Tensor weight;
  Tensor bias = {};  // may be missing
};

struct OnnxWindow {
  int64_t stride = 1, padding = 0, groups = 1;
  bool repeat_border = false;  // padding repeats the border instead of zeros
};

class OnnxBuilder {
 public:
  explicit OnnxBuilder(const OnnxBuilderOptions& options);
  ~OnnxBuilder();

  OnnxValue input(const std::string& name, const std::vector<int64_t>& shape, bool integer = false);
  void output(const std::string& name, const OnnxValue& value, bool integer = false);
  void metadata(const std::string& key, const std::string& value);
  // Work error where the ONNX checker refuses it, or where it is larger than an ONNX file can be (2 GB).
  std::string bytes() const;
  void save(const std::string& path) const;

  // The same tensor under the same name once; other tensors get another name.
  OnnxValue weight(const std::string& name, const Tensor& tensor);
  OnnxValue number(double value);

  // ---- numbers, with broadcasting ----
  OnnxValue add(const OnnxValue& a, const OnnxValue& b) { return binary("Add", a, b); }
  OnnxValue subtract(const OnnxValue& a, const OnnxValue& b) { return binary("Sub", a, b); }
  OnnxValue multiply(const OnnxValue& a, const OnnxValue& b) { return binary("Mul", a, b); }
  OnnxValue divide(const OnnxValue& a, const OnnxValue& b) { return binary("Div", a, b); }
  OnnxValue scale(const OnnxValue& x, double factor) { return multiply(x, number(factor)); }
  OnnxValue relu(const OnnxValue& x) { return unary("Relu", x); }
  OnnxValue sigmoid(const OnnxValue& x) { return unary("Sigmoid", x); }
  OnnxValue square_root(const OnnxValue& x) { return unary("Sqrt", x); }
  OnnxValue gelu(const OnnxValue& x);  // with erf
  OnnxValue silu(const OnnxValue& x) { return multiply(x, sigmoid(x)); }

  // ---- layers ----
  OnnxValue matmul(const OnnxValue& a, const OnnxValue& b);
  OnnxValue linear(const OnnxValue& x, const OnnxLayer& layer);  // (..., D), weight (c, D) -> (..., c)
  OnnxValue conv(const OnnxValue& x, const OnnxLayer& layer, const OnnxWindow& window = {});
  // Kernel and stride s, weight (in, out, s, s).
  OnnxValue conv_transpose(const OnnxValue& x, const OnnxLayer& layer);
  OnnxValue max_pool(const OnnxValue& x, int64_t kernel, const OnnxWindow& window);
  OnnxValue batch_norm(const OnnxValue& x, const OnnxLayer& layer, const Tensor& mean, const Tensor& variance,
                       double eps);
  OnnxValue layer_norm(const OnnxValue& x, const OnnxLayer& layer, double eps);    // over the last axis
  OnnxValue channel_norm(const OnnxValue& x, const OnnxLayer& layer, double eps);  // over C of (B, C, H, W)
  OnnxValue softmax(const OnnxValue& x);                                           // over the last axis
  OnnxValue resize(const OnnxValue& x, int64_t height, int64_t width, bool align_corners);  // bilinear

  // ---- sums and orders ----
  OnnxValue mean(const OnnxValue& x, const std::vector<int64_t>& axes, bool keep = false);
  OnnxValue sum(const OnnxValue& x, const std::vector<int64_t>& axes, bool keep = false);
  OnnxValue arg_max(const OnnxValue& x);                            // over the last axis
  OnnxValue ranks(const OnnxValue& x);                              // (B, n): 0 for the least, n - 1; stable
  OnnxValue gather(const OnnxValue& table, const OnnxValue& rows);  // (R, ...), (B) -> (B, ...)
  // index where it is not negative, else the other one
  OnnxValue chosen(const OnnxValue& index, const OnnxValue& otherwise);

  // ---- shapes ----
  OnnxValue reshape(const OnnxValue& x, const std::vector<int64_t>& behind_batch);
  OnnxValue transpose(const OnnxValue& x, const std::vector<int64_t>& order);
  OnnxValue slice(const OnnxValue& x, int64_t axis, int64_t begin, int64_t end);
  OnnxValue concat(const std::vector<OnnxValue>& parts, int64_t axis);
  OnnxValue pad_front(const OnnxValue& x, int64_t axis, int64_t count);  // with zeros
  OnnxValue pick(const OnnxValue& x, int64_t axis, const std::vector<int64_t>& indices);

 private:
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs);
  OnnxValue unary(const std::string& op, const OnnxValue& x);
  OnnxValue binary(const std::string& op, const OnnxValue& a, const OnnxValue& b);
  OnnxValue reduced(const std::string& op, const OnnxValue& x, std::vector<int64_t> axes, bool keep);
  std::string integers(const std::vector<int64_t>& values);  // a constant
  std::string fresh(const std::string& word);
  OnnxValue stored(const std::string& name, const Tensor& tensor, bool half);

  const OnnxBuilderOptions options_;
  std::unique_ptr<onnx::GraphProto> graph_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::map<std::string, Tensor> weights_;  // by name, as they were given
  std::map<std::string, OnnxValue> values_of_weights_;
  std::map<std::string, int> words_;
  std::string batch_;  // the number of images as a value; made when first needed
  std::string first_input_;
};

// Whether this file begins as those that are saved here.
bool is_onnx_of_aha(const std::string& path);

}  // namespace aha
