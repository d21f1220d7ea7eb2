// Any bytes as an ONNX file: a graph whose nodes read what stands before them, or an input error.
//
//   cmake --preset fuzz && ninja -C build/fuzz onnx_fuzz && build/fuzz/bin/onnx_fuzz
#include <onnx/onnx_pb.h>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>

#include "aha/base/error.h"
#include "aha/onnx/graph.h"
#include "tests/fuzz/seeds.h"

namespace {

void must(bool truth) {
  if (!truth) std::abort();
}

// One weight of each kind of field, a node with an attribute of each type, old-style inputs.
std::string seed_of(int32_t type, bool raw) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  auto* x = graph.add_input();
  x->set_name("x");
  x->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(1);
  graph.add_input()->set_name("w");
  auto* weight = graph.add_initializer();
  weight->set_name("w");
  weight->set_data_type(type);
  weight->add_dims(1);
  if (raw)
    weight->set_raw_data(std::string(4, '\1'));
  else if (type == onnx::TensorProto::FLOAT)
    weight->add_float_data(1);
  else if (type == onnx::TensorProto::INT64)
    weight->add_int64_data(1);
  else if (type == onnx::TensorProto::DOUBLE)
    weight->add_double_data(1);
  else
    weight->add_int32_data(1);
  auto* node = graph.add_node();
  node->set_op_type("Conv");
  for (const char* name : {"x", "w", ""}) node->add_input(name);
  node->add_output("y");
  const auto attribute = [&](const char* name, onnx::AttributeProto::AttributeType of) {
    auto* made = node->add_attribute();
    made->set_name(name);
    made->set_type(of);
    return made;
  };
  attribute("i", onnx::AttributeProto::INT)->set_i(-1);
  attribute("f", onnx::AttributeProto::FLOAT)->set_f(0.5);
  attribute("s", onnx::AttributeProto::STRING)->set_s("SAME_UPPER");
  attribute("is", onnx::AttributeProto::INTS)->add_ints(3);
  attribute("fs", onnx::AttributeProto::FLOATS)->add_floats(3);
  *attribute("t", onnx::AttributeProto::TENSOR)->mutable_t() = *weight;
  graph.add_output()->set_name("y");
  return model.SerializeAsString();
}

std::string external_seed() {
  onnx::ModelProto model;
  model.ParseFromString(seed_of(onnx::TensorProto::FLOAT, true));
  auto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = weight.add_external_data();
  location->set_key("location");
  location->set_value("../weights.bin");
  return model.SerializeAsString();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using onnx::TensorProto;
  start_from(argc, argv,
             {seed_of(TensorProto::FLOAT, true), seed_of(TensorProto::FLOAT, false),
              seed_of(TensorProto::INT64, false), seed_of(TensorProto::DOUBLE, false),
              seed_of(TensorProto::FLOAT16, false), seed_of(TensorProto::BOOL, false), external_seed()});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    // A folder that is not there: no external data is found.
    const auto graph = aha::onnx_graph_from_bytes(std::as_bytes(std::span(data, size)), "/nowhere/fuzz.onnx");
    std::set<int> there(graph.inputs.begin(), graph.inputs.end());
    for (const auto& [value, view] : graph.constants) {
      aha::floats_from_view(view);
      there.insert(value);
    }
    for (const auto& node : graph.nodes) {
      for (const int value : node.inputs) must(value < 0 || there.contains(value));
      there.insert(node.outputs.begin(), node.outputs.end());
    }
    for (const int value : graph.outputs) must(there.contains(value));
  } catch (const aha::Error&) {
  }
  return 0;
}
