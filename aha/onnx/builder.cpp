#include "aha/onnx/builder.h"

#include <onnx/onnx_pb.h>

#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx  // Debian's headers beside the protocol buffers expect it
#endif
#include <onnx/checker.h>

#include <fstream>
#include <numbers>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr int kLowestOpset = 13, kHighestOpset = 17;
constexpr int kLowestIr = 7, kHighestIr = 8;  // versions of the file format

void set_integer(onnx::NodeProto& node, const char* name, int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void set_integers(onnx::NodeProto& node, const char* name, const std::vector<int64_t>& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

void set_real(onnx::NodeProto& node, const char* name, double value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(static_cast<float>(value));
}

void set_text(onnx::NodeProto& node, const char* name, const std::string& value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

void describe(onnx::ValueInfoProto& info, const std::string& name, const std::vector<int64_t>& shape,
              bool integer) {
  info.set_name(name);
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(integer ? onnx::TensorProto::INT64 : onnx::TensorProto::FLOAT);
  type->mutable_shape();
  for (const int64_t size : shape) {
    auto* dim = type->mutable_shape()->add_dim();
    if (size < 0)
      dim->set_dim_param("N");
    else
      dim->set_dim_value(size);
  }
}

std::vector<int64_t> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const auto &longer = a.size() < b.size() ? b : a, &other = a.size() < b.size() ? a : b;
  std::vector<int64_t> shape = longer;
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& size = shape[longer.size() - other.size() + i];
    TORCH_CHECK(size == 1 || other[i] == 1 || size == other[i], "shapes that do not broadcast");
    if (size == 1) size = other[i];
  }
  return shape;
}

int64_t window_outputs(int64_t size, int64_t kernel, const OnnxWindow& w) {
  return (size + 2 * w.padding - kernel) / w.stride + 1;
}

bool makes_any(const onnx::NodeProto& node, const std::set<std::string>& values) {
  return std::ranges::any_of(node.output(), [&](const auto& made) { return values.contains(made); });
}

// What the outputs are computed from; nodes stand in the order they run in.
std::set<std::string> needed_values(const onnx::GraphProto& graph) {
  std::set<std::string> needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  for (int n = graph.node_size(); n-- > 0;)
    if (makes_any(graph.node(n), needed))
      needed.insert(graph.node(n).input().begin(), graph.node(n).input().end());
  return needed;
}

}  // namespace

OnnxBuilder::OnnxBuilder(const OnnxBuilderOptions& options)
    : options_(options), graph_(std::make_unique<onnx::GraphProto>()) {
  if (options.opset < kLowestOpset || options.opset > kHighestOpset)
    throw input_error("--opset: expected {}..{}, found {}", kLowestOpset, kHighestOpset, options.opset);
  graph_->set_name("aha");
}

OnnxBuilder::~OnnxBuilder() = default;

OnnxValue OnnxBuilder::input(const std::string& name, const std::vector<int64_t>& shape, bool integer) {
  describe(*graph_->add_input(), name, shape, integer);
  if (first_input_.empty()) first_input_ = name;
  return {name, shape};
}

void OnnxBuilder::output(const std::string& name, const OnnxValue& value, bool integer) {
  node("Identity", {value.name}).set_output(0, name);
  describe(*graph_->add_output(), name, value.shape, integer);
}

void OnnxBuilder::metadata(const std::string& key, const std::string& value) {
  metadata_.emplace_back(key, value);
}

std::string OnnxBuilder::bytes() const {
  onnx::ModelProto model;
  model.set_ir_version(options_.opset < 15 ? kLowestIr : kHighestIr);
  model.set_producer_name("aha");
  model.add_opset_import()->set_version(options_.opset);
  model.mutable_opset_import(0)->set_domain("");
  for (const auto& [key, value] : metadata_) {
    auto* entry = model.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
  const auto needed = needed_values(*graph_);
  auto& graph = *model.mutable_graph();
  graph.set_name(graph_->name());
  *graph.mutable_input() = graph_->input();
  *graph.mutable_output() = graph_->output();
  uint64_t bytes = 0;
  for (const auto& one : graph_->initializer())
    if (needed.contains(one.name())) {
      bytes += one.raw_data().size();
      *graph.add_initializer() = one;
    }
  for (const auto& one : graph_->node())
    if (makes_any(one, needed)) *graph.add_node() = one;
  constexpr uint64_t kMost = 2'000'000'000;  // of a protocol buffer, less the rest of the graph
  if (bytes > kMost)
    throw input_error("expected at most {} bytes of weights in one ONNX file, found {}{}", kMost, bytes,
                      options_.half ? "" : " (16-bit weights are half of it)");
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& error) {
    throw work_error("the ONNX checker refuses the graph: {}", printable(error.what(), 400));
  }
  return model.SerializeAsString();
}

void OnnxBuilder::save(const std::string& path) const {
  write_file_atomically(path, bytes());
}

std::string OnnxBuilder::fresh(const std::string& word) {
  return fmt::format("{}_{}", word, words_[word]++);
}

onnx::NodeProto& OnnxBuilder::node(const std::string& op, const std::vector<std::string>& inputs) {
  auto& made = *graph_->add_node();
  made.set_op_type(op);
  for (const auto& name : inputs) made.add_input(name);
  made.add_output(fresh(op));
  made.set_name(made.output(0));
  return made;
}

OnnxValue OnnxBuilder::stored(const std::string& name, const Tensor& tensor, bool half) {
  const bool integer = tensor.scalar_type() == at::kLong;
  const Tensor values = tensor.detach()
                            .cpu()
                            .to(integer ? at::kLong
                                : half  ? at::kHalf
                                        : at::kFloat)
                            .contiguous();
  auto& proto = *graph_->add_initializer();
  proto.set_name(name);
  proto.set_data_type(integer ? onnx::TensorProto::INT64
                      : half  ? onnx::TensorProto::FLOAT16
                              : onnx::TensorProto::FLOAT);
  for (const int64_t size : values.sizes()) proto.add_dims(size);
  proto.set_raw_data(values.data_ptr(), values.nbytes());
  OnnxValue value{name, values.sizes().vec()};
  if (!half) return value;
  auto& cast = node("Cast", {name});
  set_integer(cast, "to", onnx::TensorProto::FLOAT);
  value.name = cast.output(0);
  return value;
}

OnnxValue OnnxBuilder::weight(const std::string& name, const Tensor& tensor) {
  std::string free = name;
  for (int other = 2; weights_.contains(free); free = fmt::format("{}.{}", name, other++))
    if (const Tensor& there = weights_.at(free); there.sizes() == tensor.sizes() && there.equal(tensor))
      return values_of_weights_.at(free);
  weights_[free] = tensor;
  // Few numbers stay exact: they cost nothing.
  constexpr int64_t kFew = 64;
  const bool half = options_.half && tensor.is_floating_point() && tensor.numel() > kFew;
  return values_of_weights_[free] = stored(free, tensor, half);
}

OnnxValue OnnxBuilder::number(double value) {
  return weight(fmt::format("number_{:.9g}", value), torch::tensor(value, at::kFloat));
}

std::string OnnxBuilder::integers(const std::vector<int64_t>& values) {
  return weight(fmt::format("integers_{}", fmt::join(values, "_")), torch::tensor(values, at::kLong)).name;
}

OnnxValue OnnxBuilder::unary(const std::string& op, const OnnxValue& x) {
  return {node(op, {x.name}).output(0), x.shape};
}

OnnxValue OnnxBuilder::binary(const std::string& op, const OnnxValue& a, const OnnxValue& b) {
  return {node(op, {a.name, b.name}).output(0), broadcast(a.shape, b.shape)};
}

OnnxValue OnnxBuilder::gelu(const OnnxValue& x) {
  const OnnxValue erf = unary("Erf", divide(x, number(std::numbers::sqrt2)));
  return scale(multiply(x, add(erf, number(1))), 0.5);
}

OnnxValue OnnxBuilder::matmul(const OnnxValue& a, const OnnxValue& b) {
  TORCH_CHECK(a.size(-1) == b.size(-2), "matrices that do not fit");
  const auto rows = [](const OnnxValue& m) { return std::vector(m.shape.begin(), m.shape.end() - 2); };
  auto shape = broadcast(rows(a), rows(b));
  shape.insert(shape.end(), {a.size(-2), b.size(-1)});
  return {node("MatMul", {a.name, b.name}).output(0), shape};
}

OnnxValue OnnxBuilder::linear(const OnnxValue& x, const OnnxLayer& layer) {
  const OnnxValue product = matmul(x, weight(layer.name + ".weight", layer.weight.t()));
  return layer.bias.defined() ? add(product, weight(layer.name + ".bias", layer.bias)) : product;
}

OnnxValue OnnxBuilder::conv(const OnnxValue& x, const OnnxLayer& layer, const OnnxWindow& w) {
  const OnnxValue kernel = weight(layer.name + ".weight", layer.weight);
  OnnxValue in = x;
  if (w.repeat_border && w.padding > 0) {
    const int64_t p = w.padding;
    auto& padded = node("Pad", {x.name, integers({0, 0, p, p, 0, 0, p, p})});
    set_text(padded, "mode", "edge");
    in = {padded.output(0), x.shape};
  }
  std::vector<std::string> inputs = {in.name, kernel.name};
  if (layer.bias.defined()) inputs.push_back(weight(layer.name + ".bias", layer.bias).name);
  auto& made = node("Conv", inputs);
  set_integers(made, "kernel_shape", {kernel.size(2), kernel.size(3)});
  set_integers(made, "strides", {w.stride, w.stride});
  if (!w.repeat_border) set_integers(made, "pads", std::vector<int64_t>(4, w.padding));
  set_integer(made, "group", w.groups);
  return {made.output(0),
          {x.size(0), kernel.size(0), window_outputs(x.size(2), kernel.size(2), w),
           window_outputs(x.size(3), kernel.size(3), w)}};
}

OnnxValue OnnxBuilder::conv_transpose(const OnnxValue& x, const OnnxLayer& layer) {
  const OnnxValue kernel = weight(layer.name + ".weight", layer.weight);
  const int64_t s = kernel.size(2);
  std::vector<std::string> inputs = {x.name, kernel.name};
  if (layer.bias.defined()) inputs.push_back(weight(layer.name + ".bias", layer.bias).name);
  auto& made = node("ConvTranspose", inputs);
  set_integers(made, "kernel_shape", {s, s});
  set_integers(made, "strides", {s, s});
  return {made.output(0), {x.size(0), kernel.size(1), s * x.size(2), s * x.size(3)}};
}

OnnxValue OnnxBuilder::max_pool(const OnnxValue& x, int64_t kernel, const OnnxWindow& w) {
  auto& made = node("MaxPool", {x.name});
  set_integers(made, "kernel_shape", {kernel, kernel});
  set_integers(made, "strides", {w.stride, w.stride});
  set_integers(made, "pads", std::vector<int64_t>(4, w.padding));
  return {made.output(0),
          {x.size(0), x.size(1), window_outputs(x.size(2), kernel, w), window_outputs(x.size(3), kernel, w)}};
}

OnnxValue OnnxBuilder::batch_norm(const OnnxValue& x, const OnnxLayer& layer, const Tensor& mean,
                                  const Tensor& variance, double eps) {
  auto& made = node("BatchNormalization", {x.name, weight(layer.name + ".weight", layer.weight).name,
                                           weight(layer.name + ".bias", layer.bias).name,
                                           weight(layer.name + ".running_mean", mean).name,
                                           weight(layer.name + ".running_var", variance).name});
  set_real(made, "epsilon", eps);
  return {made.output(0), x.shape};
}

OnnxValue OnnxBuilder::layer_norm(const OnnxValue& x, const OnnxLayer& layer, double eps) {
  const OnnxValue gain = weight(layer.name + ".weight", layer.weight),
                  offset = weight(layer.name + ".bias", layer.bias);
  if (options_.opset >= 17) {
    auto& made = node("LayerNormalization", {x.name, gain.name, offset.name});
    set_integer(made, "axis", -1);
    set_real(made, "epsilon", eps);
    return {made.output(0), x.shape};
  }
  const OnnxValue centered = subtract(x, mean(x, {-1}, true));
  const OnnxValue variance = mean(multiply(centered, centered), {-1}, true);
  const OnnxValue normed = divide(centered, square_root(add(variance, number(eps))));
  return add(multiply(normed, gain), offset);
}

OnnxValue OnnxBuilder::channel_norm(const OnnxValue& x, const OnnxLayer& layer, double eps) {
  return transpose(layer_norm(transpose(x, {0, 2, 3, 1}), layer, eps), {0, 3, 1, 2});
}

OnnxValue OnnxBuilder::softmax(const OnnxValue& x) {
  auto& made = node("Softmax", {x.name});
  set_integer(made, "axis", -1);
  return {made.output(0), x.shape};
}

OnnxValue OnnxBuilder::resize(const OnnxValue& x, int64_t height, int64_t width, bool align_corners) {
  if (x.size(2) == height && x.size(3) == width) return x;
  // Whole factors are constants, which every runtime takes; others need the sizes, to be exact.
  const bool whole = height % x.size(2) == 0 && width % x.size(3) == 0;
  std::vector<std::string> inputs = {x.name, ""};
  if (whole) {
    const auto factor = [](int64_t to, int64_t from) { return static_cast<float>(to / from); };
    const std::vector<float> factors = {1, 1, factor(height, x.size(2)), factor(width, x.size(3))};
    inputs.push_back(weight("factors", torch::tensor(factors)).name);
  } else {
    if (batch_.empty()) {
      const std::string shape = node("Shape", {first_input_}).output(0);
      batch_ = node("Slice", {shape, integers({0}), integers({1})}).output(0);
    }
    auto& sizes = node("Concat", {batch_, integers({x.size(1), height, width})});
    set_integer(sizes, "axis", 0);
    inputs.insert(inputs.end(), {"", sizes.output(0)});
  }
  auto& made = node("Resize", inputs);
  set_text(made, "mode", "linear");
  set_text(made, "coordinate_transformation_mode", align_corners ? "align_corners" : "half_pixel");
  return {made.output(0), {x.size(0), x.size(1), height, width}};
}

OnnxValue OnnxBuilder::reduced(const std::string& op, const OnnxValue& x, std::vector<int64_t> axes,
                               bool keep) {
  for (auto& axis : axes) axis = axis < 0 ? axis + x.rank() : axis;
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool gone = std::ranges::find(axes, i) != axes.end();
    if (!gone || keep) shape.push_back(gone ? 1 : x.size(i));
  }
  const bool by_input = op == "ReduceSum";  // since opset 13; the others since 18
  auto& made = by_input ? node(op, {x.name, integers(axes)}) : node(op, {x.name});
  if (!by_input) set_integers(made, "axes", axes);
  set_integer(made, "keepdims", keep);
  return {made.output(0), shape};
}

OnnxValue OnnxBuilder::mean(const OnnxValue& x, const std::vector<int64_t>& axes, bool keep) {
  return reduced("ReduceMean", x, axes, keep);
}
OnnxValue OnnxBuilder::sum(const OnnxValue& x, const std::vector<int64_t>& axes, bool keep) {
  return reduced("ReduceSum", x, axes, keep);
}

OnnxValue OnnxBuilder::arg_max(const OnnxValue& x) {
  auto& made = node("ArgMax", {x.name});
  set_integer(made, "axis", -1);
  set_integer(made, "keepdims", 0);
  return {made.output(0), {x.shape.begin(), x.shape.end() - 1}};
}

// The order of the order: of equal numbers TopK gives the lower index first.
OnnxValue OnnxBuilder::ranks(const OnnxValue& x) {
  const auto ascending = [&](const std::string& of) {
    auto& made = node("TopK", {of, integers({x.size(-1)})});
    set_integer(made, "axis", -1);
    set_integer(made, "largest", 0);
    set_integer(made, "sorted", 1);
    made.add_output(fresh("Order"));
    return made.output(1);
  };
  auto& cast = node("Cast", {ascending(ascending(x.name))});
  set_integer(cast, "to", onnx::TensorProto::FLOAT);
  return {cast.output(0), x.shape};
}

OnnxValue OnnxBuilder::gather(const OnnxValue& table, const OnnxValue& rows) {
  auto& made = node("Gather", {table.name, rows.name});
  set_integer(made, "axis", 0);
  std::vector<int64_t> shape = rows.shape;
  shape.insert(shape.end(), table.shape.begin() + 1, table.shape.end());
  return {made.output(0), shape};
}

OnnxValue OnnxBuilder::chosen(const OnnxValue& index, const OnnxValue& otherwise) {
  const std::string zero = integers({0});
  const std::string missing = node("Less", {index.name, zero}).output(0);
  return {node("Where", {missing, otherwise.name, index.name}).output(0), index.shape};
}

OnnxValue OnnxBuilder::reshape(const OnnxValue& x, const std::vector<int64_t>& behind_batch) {
  std::vector<int64_t> written = {0}, shape = {x.size(0)};  // 0 = as it is
  written.insert(written.end(), behind_batch.begin(), behind_batch.end());
  shape.insert(shape.end(), behind_batch.begin(), behind_batch.end());
  return {node("Reshape", {x.name, integers(written)}).output(0), shape};
}

OnnxValue OnnxBuilder::transpose(const OnnxValue& x, const std::vector<int64_t>& order) {
  auto& made = node("Transpose", {x.name});
  set_integers(made, "perm", order);
  std::vector<int64_t> shape;
  for (const int64_t axis : order) shape.push_back(x.size(axis));
  return {made.output(0), shape};
}

OnnxValue OnnxBuilder::slice(const OnnxValue& x, int64_t axis, int64_t begin, int64_t end) {
  if (begin == 0 && end == x.size(axis)) return x;
  OnnxValue out{node("Slice", {x.name, integers({begin}), integers({end}), integers({axis})}).output(0),
                x.shape};
  out.shape.at(static_cast<size_t>(axis)) = end - begin;
  return out;
}

OnnxValue OnnxBuilder::concat(const std::vector<OnnxValue>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0];
  std::vector<std::string> names;
  std::vector<int64_t> shape = parts.at(0).shape;
  auto& along = shape.at(static_cast<size_t>(axis < 0 ? axis + std::ssize(shape) : axis));
  along = 0;
  for (const auto& part : parts) {
    names.push_back(part.name);
    along += part.size(axis);
  }
  auto& made = node("Concat", names);
  set_integer(made, "axis", axis);
  return {made.output(0), shape};
}

OnnxValue OnnxBuilder::pad_front(const OnnxValue& x, int64_t axis, int64_t count) {
  if (count == 0) return x;
  std::vector<int64_t> pads(static_cast<size_t>(2 * x.rank()), 0);
  pads.at(static_cast<size_t>(axis)) = count;
  OnnxValue out{node("Pad", {x.name, integers(pads)}).output(0), x.shape};
  out.shape.at(static_cast<size_t>(axis)) += count;
  return out;
}

OnnxValue OnnxBuilder::pick(const OnnxValue& x, int64_t axis, const std::vector<int64_t>& indices) {
  auto& made = node("Gather", {x.name, integers(indices)});
  set_integer(made, "axis", axis);
  OnnxValue out{made.output(0), x.shape};
  out.shape.at(static_cast<size_t>(axis)) = std::ssize(indices);
  return out;
}

bool is_onnx_of_aha(const std::string& path) {
  onnx::ModelProto opening;
  opening.set_ir_version(kLowestIr);
  opening.set_producer_name("aha");
  std::string expected = opening.SerializeAsString();
  std::string found(expected.size(), '\0');
  std::ifstream(path, std::ios::binary).read(found.data(), static_cast<std::streamsize>(found.size()));
  if (found[1] == kHighestIr) found[1] = kLowestIr;
  return found == expected;
}

}  // namespace aha
