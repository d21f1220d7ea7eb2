#include "aha/onnx/graph.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

#include <cstring>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
constexpr int kMostNodes = 1'000'000;

struct StoredType {
  int onnx;
  at::ScalarType stored, used;  // as in the file; as the graph is computed
};
constexpr StoredType kStoredTypes[] = {
    {onnx::TensorProto::FLOAT, at::kFloat, at::kFloat},
    {onnx::TensorProto::DOUBLE, at::kDouble, at::kDouble},
    {onnx::TensorProto::FLOAT16, at::kHalf, at::kFloat},
    {onnx::TensorProto::BFLOAT16, at::kBFloat16, at::kFloat},
    {onnx::TensorProto::INT64, at::kLong, at::kLong},
    {onnx::TensorProto::INT32, at::kInt, at::kInt},
    {onnx::TensorProto::INT16, at::kShort, at::kShort},
    {onnx::TensorProto::INT8, at::kChar, at::kChar},
    {onnx::TensorProto::UINT8, at::kByte, at::kByte},
    {onnx::TensorProto::BOOL, at::kBool, at::kBool},
};

const StoredType& stored_type(int onnx_type, const std::string& where) {
  for (const auto& type : kStoredTypes)
    if (type.onnx == onnx_type) return type;
  throw input_error(
      "{}: expected numbers of up to 64 bits or truth values, found the ONNX type {}", where,
      onnx::TensorProto::DataType_IsValid(onnx_type)
          ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(onnx_type))
          : std::to_string(onnx_type));
}

int64_t numel_of(const onnx::TensorProto& proto, const std::string& where) {
  int64_t numel = 1;
  for (const int64_t size : proto.dims())
    if (size < 0 || __builtin_mul_overflow(numel, size, &numel))
      throw input_error("{}: expected a shape of sizes from 0, found {}", where, size);
  return numel;
}

// The bytes of external data, which stand in a file of the model's own folder.
std::string external_bytes(const onnx::TensorProto& proto, const std::string& model, const std::string& where,
                           uint64_t expected) {
  std::string location;
  uint64_t offset = 0;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = std::strtoull(entry.value().c_str(), nullptr, 10);
  }
  const fs::path name(location);
  if (location.empty() || name.is_absolute() || name.has_parent_path() || name == "..")
    throw input_error("{}: expected external data in a file beside the model, found '{}'", where,
                      printable(location));
  const fs::path file = fs::path(model).parent_path() / name;
  if (fs::is_symlink(file))
    throw input_error("{}: expected a file beside the model, found the link {}", where, printable(location));
  const MappedFile mapped(file.string());
  if (offset > mapped.bytes().size() || expected > mapped.bytes().size() - offset)
    throw input_error("{}: expected {} bytes at {} of {}, found {} bytes in all", where, expected, offset,
                      printable(location), mapped.bytes().size());
  const auto part = mapped.bytes().subspan(offset, expected);
  return {reinterpret_cast<const char*>(part.data()), part.size()};
}

template <class Stored, class Field>
void fill_from(Tensor& tensor, const Field& field) {
  auto* out = tensor.data_ptr<Stored>();
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<Stored>(field.Get(i));
}

// 16-bit floats stand in int32_data as their bits.
void fill_bits(Tensor& tensor, const google::protobuf::RepeatedField<int32_t>& field) {
  auto* out = static_cast<uint16_t*>(tensor.data_ptr());
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<uint16_t>(field.Get(i));
}

int typed_size(const onnx::TensorProto& proto) {
  switch (proto.data_type()) {
    case onnx::TensorProto::FLOAT:
      return proto.float_data_size();
    case onnx::TensorProto::DOUBLE:
      return proto.double_data_size();
    case onnx::TensorProto::INT64:
      return proto.int64_data_size();
    default:
      return proto.int32_data_size();
  }
}

void fill_typed(Tensor& tensor, const onnx::TensorProto& proto) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return fill_from<float>(tensor, proto.float_data());
    case at::kDouble:
      return fill_from<double>(tensor, proto.double_data());
    case at::kLong:
      return fill_from<int64_t>(tensor, proto.int64_data());
    case at::kInt:
      return fill_from<int32_t>(tensor, proto.int32_data());
    case at::kShort:
      return fill_from<int16_t>(tensor, proto.int32_data());
    case at::kChar:
      return fill_from<int8_t>(tensor, proto.int32_data());
    case at::kByte:
      return fill_from<uint8_t>(tensor, proto.int32_data());
    case at::kBool:
      return fill_from<bool>(tensor, proto.int32_data());
    default:
      return fill_bits(tensor, proto.int32_data());
  }
}

Tensor tensor_from_proto(const onnx::TensorProto& proto, const std::string& model, const std::string& where) {
  const StoredType& type = stored_type(proto.data_type(), where);
  const int64_t numel = numel_of(proto, where);
  const uint64_t bytes_each = c10::elementSize(type.stored);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<uint64_t>(numel), bytes_each, &bytes))
    throw input_error("{}: a tensor of {} numbers does not fit into memory", where, numel);
  std::string outside;
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    outside = external_bytes(proto, model, where, bytes);
  const std::string& raw = proto.data_location() == onnx::TensorProto::EXTERNAL ? outside : proto.raw_data();
  const bool typed = raw.empty() && numel > 0;
  if (typed ? typed_size(proto) != numel : raw.size() != bytes)
    throw input_error(
        "{}: expected {} numbers ({} bytes), found {}", where, numel, bytes,
        typed ? fmt::format("{} numbers", typed_size(proto)) : fmt::format("{} bytes", raw.size()));
  const std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  Tensor tensor = torch::empty(shape, torch::dtype(type.stored));
  if (typed)
    fill_typed(tensor, proto);
  else if (bytes > 0)
    std::memcpy(tensor.data_ptr(), raw.data(), bytes);
  return tensor.to(type.used);
}

OnnxAttribute attribute_from_proto(const onnx::AttributeProto& proto, const std::string& model,
                                   const std::string& where) {
  switch (proto.type()) {
    case onnx::AttributeProto::INT:
      return static_cast<int64_t>(proto.i());
    case onnx::AttributeProto::FLOAT:
      return static_cast<double>(proto.f());
    case onnx::AttributeProto::STRING:
      return proto.s();
    case onnx::AttributeProto::INTS:
      return std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
    case onnx::AttributeProto::FLOATS:
      return std::vector<double>(proto.floats().begin(), proto.floats().end());
    case onnx::AttributeProto::TENSOR:
      return tensor_from_proto(proto.t(), model, where);
    default:
      throw input_error("{}: attribute {}: expected numbers, a text or a tensor, found {}", where,
                        printable(proto.name()), onnx::AttributeProto::AttributeType_Name(proto.type()));
  }
}

std::vector<int64_t> shape_from_proto(const onnx::ValueInfoProto& value) {
  std::vector<int64_t> shape;
  for (const auto& size : value.type().tensor_type().shape().dim())
    shape.push_back(size.has_dim_value() && size.dim_value() > 0 ? size.dim_value() : -1);
  return shape;
}

// Numbers the names of values as they appear.
class GraphReader {
 public:
  explicit GraphReader(const std::string& path) { graph_.file = path; }

  OnnxGraph read(const onnx::ModelProto& model) {
    for (const auto& opset : model.opset_import())
      if (opset.domain().empty() || opset.domain() == "ai.onnx")
        graph_.opset = static_cast<int>(std::clamp<int64_t>(opset.version(), 0, 1000));
    if (graph_.opset < 1)
      throw input_error("{}: expected a version of the ONNX operators, found none", graph_.file);
    const auto& proto = model.graph();
    if (proto.node_size() > kMostNodes)
      throw input_error("{}: expected at most {} nodes, found {}", graph_.file, kMostNodes,
                        proto.node_size());
    if (proto.sparse_initializer_size() > 0)
      throw input_error("{}: expected dense weights, found sparse ones", graph_.file);
    for (const auto& weight : proto.initializer())
      graph_.constants[define(weight.name())] = tensor_from_proto(
          weight, graph_.file, fmt::format("{}: weight {}", graph_.file, printable(weight.name())));
    for (const auto& input : proto.input()) {
      if (numbers_.contains(input.name())) continue;  // old files list their weights here too
      graph_.inputs.push_back(define(input.name()));
      graph_.input_shapes.push_back(shape_from_proto(input));
    }
    for (const auto& node : proto.node()) add(node);
    for (const auto& output : proto.output())
      graph_.outputs.push_back(number_of(output.name(), "the output"));
    if (graph_.outputs.empty()) throw input_error("{}: expected an output, found none", graph_.file);
    return std::move(graph_);
  }

 private:
  int define(const std::string& name) {
    const auto [found, fresh] = numbers_.try_emplace(name, static_cast<int>(graph_.values.size()));
    if (!fresh || name.empty())
      throw input_error("{}: expected each value once, found '{}' again", graph_.file, printable(name));
    graph_.values.push_back(name);
    return found->second;
  }

  int number_of(const std::string& name, const std::string& reader) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end())
      throw input_error("{}: {} reads '{}', which nothing before it makes", graph_.file, reader,
                        printable(name));
    return found->second;
  }

  void add(const onnx::NodeProto& proto) {
    OnnxNode node;
    node.op = printable(proto.op_type());
    node.name = printable(proto.name().empty() && proto.output_size() > 0 ? proto.output(0) : proto.name());
    const std::string where = fmt::format("{}: {} {}", graph_.file, node.op, node.name);
    if (!proto.domain().empty() && proto.domain() != "ai.onnx")
      throw input_error("{}: expected an operator of ONNX itself, found one of {}", where,
                        printable(proto.domain()));
    for (const auto& name : proto.input()) node.inputs.push_back(name.empty() ? -1 : number_of(name, where));
    for (const auto& attribute : proto.attribute())
      node.attributes.emplace(attribute.name(), attribute_from_proto(attribute, graph_.file, where));
    for (const auto& name : proto.output()) node.outputs.push_back(name.empty() ? -1 : define(name));
    graph_.nodes.push_back(std::move(node));
  }

  OnnxGraph graph_;
  std::map<std::string, int> numbers_;
};

template <class Message>
Message message_from_file(const std::string& path, const char* what) {
  const MappedFile file(path);
  constexpr size_t kMost = INT_MAX;  // of a protocol buffer
  if (file.bytes().size() > kMost)
    throw input_error(
        "{}: expected at most 2 GB in one file, found {} bytes: keep the weights as external data", path,
        file.bytes().size());
  google::protobuf::io::ArrayInputStream bytes(file.bytes().data(), static_cast<int>(file.bytes().size()));
  google::protobuf::io::CodedInputStream stream(&bytes);
  stream.SetTotalBytesLimit(INT_MAX);
  Message message;
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    throw input_error("{}: expected {}, found something else or a part of one", path, what);
  return message;
}

}  // namespace

OnnxGraph read_onnx_graph(const std::string& path) {
  const auto model = message_from_file<onnx::ModelProto>(path, "an ONNX model");
  if (!model.has_graph()) throw input_error("{}: expected an ONNX model with a graph, found none", path);
  return GraphReader(path).read(model);
}

Tensor read_onnx_tensor(const std::string& path) {
  return tensor_from_proto(message_from_file<onnx::TensorProto>(path, "an ONNX tensor"), path, path);
}

}  // namespace aha
