#include "aha/onnx/graph.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <climits>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
namespace io = google::protobuf::io;
constexpr int kMostNodes = 1'000'000;

struct StoredType {
  int onnx;
  DType stored;
};
constexpr StoredType kStoredTypes[] = {
    {onnx::TensorProto::FLOAT, DType::kF32},   {onnx::TensorProto::DOUBLE, DType::kF64},
    {onnx::TensorProto::FLOAT16, DType::kF16}, {onnx::TensorProto::BFLOAT16, DType::kBF16},
    {onnx::TensorProto::INT64, DType::kI64},   {onnx::TensorProto::INT32, DType::kI32},
    {onnx::TensorProto::INT16, DType::kI16},   {onnx::TensorProto::INT8, DType::kI8},
    {onnx::TensorProto::UINT8, DType::kU8},    {onnx::TensorProto::BOOL, DType::kBool},
};

DType stored_type(int onnx_type, const std::string& where) {
  for (const auto& type : kStoredTypes)
    if (type.onnx == onnx_type) return type.stored;
  throw input_error(
      "{}: expected numbers of up to 64 bits or truth values, found the ONNX type {}", where,
      onnx::TensorProto::DataType_IsValid(onnx_type)
          ? onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(onnx_type))
          : std::to_string(onnx_type));
}

// Sizes of 0 do not hide what the others come to.
int64_t numel_of(const onnx::TensorProto& proto, const std::string& where) {
  constexpr int kMostAxes = 32;
  if (proto.dims_size() > kMostAxes)
    throw input_error("{}: expected a tensor of at most {} axes, found {}", where, kMostAxes,
                      proto.dims_size());
  int64_t numel = 1, bytes = sizeof(int64_t);
  for (const int64_t size : proto.dims()) {
    if (size < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      throw input_error("{}: expected a shape of sizes from 0 that fits into memory, found {}", where,
                        text_from_shape({proto.dims().data(), static_cast<size_t>(proto.dims_size())}));
    numel *= size;
  }
  return numel;
}

// The bytes of external data, which stand in a file of the model's own folder.
void take_external_bytes(TensorView& view, const onnx::TensorProto& proto, const std::string& model,
                         const std::string& where, uint64_t expected) {
  std::string location;
  uint64_t offset = 0;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = std::strtoull(entry.value().c_str(), nullptr, 10);
  }
  const fs::path name(location);
  if (location.empty() || location.find('\0') != std::string::npos || name.is_absolute() ||
      name.has_parent_path() || name == "..")
    throw input_error("{}: expected external data in a file beside the model, found '{}'", where,
                      printable(location));
  const fs::path file = fs::path(model).parent_path() / name;
  std::error_code missing;
  if (fs::is_symlink(file, missing))
    throw input_error("{}: expected a file beside the model, found the link {}", where, printable(location));
  const auto mapped = std::make_shared<const MappedFile>(file.string());
  if (offset > mapped->bytes().size() || expected > mapped->bytes().size() - offset)
    throw input_error("{}: expected {} bytes at {} of {}, found {} bytes in all", where, expected, offset,
                      printable(location), mapped->bytes().size());
  view.bytes = mapped->bytes().subspan(offset, expected);
  view.owner = mapped;
}

template <class Stored, class Field>
void fill_from(std::string& bytes, const Field& field) {
  auto* out = reinterpret_cast<Stored*>(bytes.data());
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<Stored>(field.Get(i));
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

// Truth values are one byte each, numbers of 16 bits stand in int32_data as their bits.
void fill_typed(std::string& bytes, DType type, const onnx::TensorProto& proto) {
  switch (type) {
    case DType::kF32:
      return fill_from<float>(bytes, proto.float_data());
    case DType::kF64:
      return fill_from<double>(bytes, proto.double_data());
    case DType::kI64:
      return fill_from<int64_t>(bytes, proto.int64_data());
    case DType::kI32:
      return fill_from<int32_t>(bytes, proto.int32_data());
    case DType::kI16:
    case DType::kF16:
    case DType::kBF16:
      return fill_from<uint16_t>(bytes, proto.int32_data());
    case DType::kI8:
    case DType::kU8:
      return fill_from<uint8_t>(bytes, proto.int32_data());
    case DType::kBool:
      return fill_from<bool>(bytes, proto.int32_data());
  }
}

// Takes the bytes out of the message.
TensorView tensor_from_proto(onnx::TensorProto& proto, const std::string& model, const std::string& where) {
  TensorView view;
  view.dtype = stored_type(proto.data_type(), where);
  const int64_t numel = numel_of(proto, where);
  const uint64_t bytes = static_cast<uint64_t>(numel) * size_of(view.dtype);
  view.shape.assign(proto.dims().begin(), proto.dims().end());
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    take_external_bytes(view, proto, model, where, bytes);
  } else {
    const bool typed = proto.raw_data().empty() && numel > 0;
    if (typed ? typed_size(proto) != numel : proto.raw_data().size() != bytes)
      throw input_error("{}: expected {} numbers ({} bytes), found {}", where, numel, bytes,
                        typed ? fmt::format("{} numbers", typed_size(proto))
                              : fmt::format("{} bytes", proto.raw_data().size()));
    const auto own = std::make_shared<std::string>(std::move(*proto.mutable_raw_data()));
    if (typed) {
      own->resize(bytes);
      fill_typed(*own, view.dtype, proto);
      proto.Clear();
    }
    view.bytes = std::as_bytes(std::span(*own));
    view.owner = own;
  }
  if (view.dtype == DType::kBool)
    for (const std::byte one : view.bytes)
      if (std::to_integer<int>(one) > 1)
        throw input_error("{}: expected truth values of 0 and 1, found {}", where, std::to_integer<int>(one));
  return view;
}

OnnxAttribute attribute_from_proto(onnx::AttributeProto& proto, const std::string& model,
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
      return tensor_from_proto(*proto.mutable_t(), model, where);
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

  OnnxGraph read(onnx::ModelProto& model) {
    for (const auto& opset : model.opset_import())
      if (opset.domain().empty() || opset.domain() == "ai.onnx")
        graph_.opset = static_cast<int>(std::clamp<int64_t>(opset.version(), 0, 1000));
    if (graph_.opset < 1)
      throw input_error("{}: expected a version of the ONNX operators, found none", graph_.file);
    auto& proto = *model.mutable_graph();
    if (proto.node_size() > kMostNodes)
      throw input_error("{}: expected at most {} nodes, found {}", graph_.file, kMostNodes,
                        proto.node_size());
    if (proto.sparse_initializer_size() > 0)
      throw input_error("{}: expected dense weights, found sparse ones", graph_.file);
    for (auto& weight : *proto.mutable_initializer()) {
      const int value = define(weight.name());
      const std::string where = fmt::format("{}: weight {}", graph_.file, printable(weight.name()));
      graph_.constants[value] = tensor_from_proto(weight, graph_.file, where);
    }
    for (const auto& input : proto.input()) {
      if (numbers_.contains(input.name())) continue;  // old files list their weights here too
      graph_.inputs.push_back(define(input.name()));
      graph_.input_shapes.push_back(shape_from_proto(input));
    }
    for (auto& node : *proto.mutable_node()) add(node);
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

  void add(onnx::NodeProto& proto) {
    OnnxNode node;
    node.op = printable(proto.op_type());
    node.name = printable(proto.name().empty() && proto.output_size() > 0 ? proto.output(0) : proto.name());
    const std::string where = fmt::format("{}: {} {}", graph_.file, node.op, node.name);
    if (!proto.domain().empty() && proto.domain() != "ai.onnx")
      throw input_error("{}: expected an operator of ONNX itself, found one of {}", where,
                        printable(proto.domain()));
    for (const auto& name : proto.input()) node.inputs.push_back(name.empty() ? -1 : number_of(name, where));
    for (auto& attribute : *proto.mutable_attribute())
      node.attributes.emplace(attribute.name(), attribute_from_proto(attribute, graph_.file, where));
    for (const auto& name : proto.output()) node.outputs.push_back(name.empty() ? -1 : define(name));
    graph_.nodes.push_back(std::move(node));
  }

  OnnxGraph graph_;
  std::map<std::string, int> numbers_;
};

// Whether parsing makes at most `left` objects: a part of a message takes two bytes of a file, and up to
// hundreds in memory. What is no message at all is left for the parser to say.
bool has_few_parts(io::CodedInputStream& in, const google::protobuf::Descriptor& type, int depth,
                   int64_t& left) {
  using google::protobuf::internal::WireFormatLite;
  constexpr int kDeepest = 100;  // as the parser has it
  while (const uint32_t tag = in.ReadTag()) {
    const auto* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool delimited = WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if ((!field || delimited) && --left < 0) return false;
    uint32_t length = 0;
    if (!field || !field->message_type() || !delimited || depth == kDeepest) {
      if (!WireFormatLite::SkipField(&in, tag)) return true;
    } else if (in.ReadVarint32(&length)) {
      const auto limit = in.PushLimit(static_cast<int>(std::min<uint32_t>(length, INT_MAX)));
      if (!has_few_parts(in, *field->message_type(), depth + 1, left)) return false;
      in.PopLimit(limit);
    } else {
      return true;
    }
  }
  return true;
}

template <class Message>
Message message_from_bytes(std::span<const std::byte> bytes, const std::string& path, const char* what) {
  constexpr size_t kMost = INT_MAX;  // of a protocol buffer
  constexpr int64_t kMostParts = 4'000'000;
  if (bytes.size() > kMost)
    throw input_error(
        "{}: expected at most 2 GB in one file, found {} bytes: keep the weights as external data", path,
        bytes.size());
  const auto stream_of = [&](auto use) {
    io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                static_cast<int>(bytes.size()));
    return use(stream);
  };
  int64_t left = kMostParts;
  if (!stream_of([&](auto& in) { return has_few_parts(in, *Message::GetDescriptor(), 0, left); }))
    throw input_error("{}: expected {} of at most {} parts, found more", path, what, kMostParts);
  Message message;
  if (!stream_of([&](auto& in) { return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage(); }))
    throw input_error("{}: expected {}, found something else or a part of one", path, what);
  return message;
}

}  // namespace

OnnxGraph onnx_graph_from_bytes(std::span<const std::byte> bytes, const std::string& file) {
  auto model = message_from_bytes<onnx::ModelProto>(bytes, file, "an ONNX model");
  if (!model.has_graph()) throw input_error("{}: expected an ONNX model with a graph, found none", file);
  return GraphReader(file).read(model);
}

OnnxGraph read_onnx_graph(const std::string& path) {
  const MappedFile file(path);
  return onnx_graph_from_bytes(file.bytes(), path);
}

TensorView read_onnx_tensor(const std::string& path) {
  const MappedFile file(path);
  auto message = message_from_bytes<onnx::TensorProto>(file.bytes(), path, "an ONNX tensor");
  return tensor_from_proto(message, path, path);
}

}  // namespace aha
