// Writes what the scripts here and the examples work on: tiny model directories with random weights, two good
// images and two broken ones.
#include <onnx/onnx_pb.h>
#include <torch/script.h>

#include <cstdio>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/rng.h"
#include "aha/base/startup.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/explainer/explainer_shape.h"
#include "aha/image/png.h"
#include "aha/networks/catalog.h"
#include "aha/networks/vit.h"
#include "aha/nn/module_state.h"
#include "aha/weights/safetensors.h"

namespace {

void write_tiny_model(const std::string& folder, int image_size, const std::vector<std::string>& classes) {
  aha::VitConfig config;
  config.image_size = image_size;
  config.patch = 8;
  config.width = 64;
  config.depth = 2;
  config.heads = 1;
  config.mlp_hidden = 128;
  config.classes = static_cast<int>(classes.size());
  aha::Vit network(config);
  network->initialize(1);
  network->head->weight.set_data(network->head->weight * 20);  // so that classes differ
  aha::ModelCard card;
  card.summary = "a tiny transformer with random weights, for tests";
  card.classes = classes;
  card.input.size = image_size;
  card.input.resize = image_size;
  aha::save_classifier(folder, *network, card);
}

// A known encoder with random weights, as a file of weights alone.
void write_encoder(const std::string& path) {
  const auto& architecture = aha::architecture_named("dinov3_vits16");
  const auto network = aha::family_of(architecture).make(architecture.config, path);
  network->initialize(1);
  auto table = aha::table_from_state(network->module());
  table.metadata = {{"aha.family", "dinov3"}, {"aha.source", "dinov3"}};
  aha::write_safetensors(path, table);
}

void write_images(const std::string& folder) {
  aha::Image image(48, 40);
  aha::Rng rng(1);
  for (auto& value : image.rgb) value = static_cast<uint8_t>(rng.below(256));
  const std::string png = aha::png_bytes(image);
  aha::write_file_atomically(folder + "/good/a.png", png);
  aha::write_file_atomically(folder + "/good/b.jpg", png);  // a PNG by another name: the content decides
  aha::write_file_atomically(folder + "/broken/broken.png", png.substr(0, png.size() / 2));
  aha::write_file_atomically(folder + "/broken/broken.jpg", std::string("\xff\xd8\xff\xe0\x00\x10JFIF", 10));
}

// Three classes: the mean of each color.
void write_script(const std::string& path) {
  torch::jit::Module module("colors");
  module.define("def forward(self, x):\n    return x.mean([2, 3])\n");
  module.save(path);
}

// conv 3x3 with stride 2 -> relu -> mean over pixels -> four classes, for images of 32 x 32, one at a time.
void write_onnx(const std::string& path) {
  torch::manual_seed(2);
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  auto* input = graph.add_input();
  input->set_name("x");
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t size : {1, 3, 32, 32}) type->mutable_shape()->add_dim()->set_dim_value(size);
  const auto weight = [&](const char* name, const torch::Tensor& values) {
    auto* proto = graph.add_initializer();
    proto->set_name(name);
    proto->set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t size : values.sizes()) proto->add_dims(size);
    proto->set_raw_data(values.data_ptr(), values.nbytes());
  };
  const auto node = [&](const char* op, const std::vector<std::string>& inputs, const char* output) {
    auto* proto = graph.add_node();
    proto->set_op_type(op);
    for (const auto& name : inputs) proto->add_input(name);
    proto->add_output(output);
    return proto;
  };
  weight("conv", torch::randn({8, 3, 3, 3}));
  weight("head", torch::randn({8, 4}));
  auto* strides = node("Conv", {"x", "conv"}, "a")->add_attribute();
  strides->set_name("strides");
  strides->set_type(onnx::AttributeProto::INTS);
  strides->add_ints(2);
  strides->add_ints(2);
  node("Relu", {"a"}, "b");
  node("GlobalAveragePool", {"b"}, "c");
  node("Flatten", {"c"}, "d");
  node("MatMul", {"d", "head"}, "y");
  graph.add_output()->set_name("y");
  aha::write_file_atomically(path, model.SerializeAsString());
}

// One block of a transformer of 16 patches and a class token, four classes, for images of 32 x 32.
void write_onnx_transformer(const std::string& path) {
  torch::manual_seed(3);
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(13);
  auto& graph = *model.mutable_graph();
  auto* input = graph.add_input();
  input->set_name("x");
  auto* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t size : {1, 3, 32, 32}) type->mutable_shape()->add_dim()->set_dim_value(size);
  const auto constant = [&](const char* name, const torch::Tensor& values) {
    auto* proto = graph.add_initializer();
    proto->set_name(name);
    proto->set_data_type(values.scalar_type() == torch::kInt64 ? onnx::TensorProto::INT64
                                                               : onnx::TensorProto::FLOAT);
    for (const int64_t size : values.sizes()) proto->add_dims(size);
    proto->set_raw_data(values.data_ptr(), values.nbytes());
  };
  const auto node = [&](const char* op, const std::vector<std::string>& inputs, const char* output) {
    auto* proto = graph.add_node();
    proto->set_op_type(op);
    for (const auto& name : inputs) proto->add_input(name);
    proto->add_output(output);
    return proto;
  };
  const auto axis = [](onnx::NodeProto* to, int64_t value) {
    auto* attribute = to->add_attribute();
    attribute->set_name("axis");
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  };
  const auto list = [](onnx::NodeProto* to, const char* name, const std::vector<int64_t>& values) {
    auto* attribute = to->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute->add_ints(value);
  };
  constexpr int64_t D = 16;
  constant("patch", torch::randn({D, 3, 8, 8}) / 8);
  constant("shape", torch::tensor({int64_t{1}, D, int64_t{16}}));
  constant("class", torch::randn({1, 1, D}));
  constant("zero", torch::zeros({}, torch::kInt64));
  for (const char* name : {"wq", "wk", "wv", "w1", "w2"}) constant(name, torch::randn({D, D}) / 4);
  constant("head", torch::randn({D, 4}));
  list(node("Conv", {"x", "patch"}, "grid"), "strides", {8, 8});
  node("Reshape", {"grid", "shape"}, "channels");
  list(node("Transpose", {"channels"}, "patches"), "perm", {0, 2, 1});
  axis(node("Concat", {"class", "patches"}, "tokens"), 1);
  node("MatMul", {"tokens", "wq"}, "q");
  node("MatMul", {"tokens", "wk"}, "k");
  node("MatMul", {"tokens", "wv"}, "v");
  list(node("Transpose", {"k"}, "kt"), "perm", {0, 2, 1});
  node("MatMul", {"q", "kt"}, "scores");
  axis(node("Softmax", {"scores"}, "attention"), -1);
  node("MatMul", {"attention", "v"}, "mixed");
  node("Add", {"tokens", "mixed"}, "middle");
  node("MatMul", {"middle", "w1"}, "hidden");
  node("Relu", {"hidden"}, "active");
  node("MatMul", {"active", "w2"}, "written");
  node("Add", {"middle", "written"}, "last");
  axis(node("Gather", {"last", "zero"}, "read"), 1);
  node("MatMul", {"read", "head"}, "y");
  graph.add_output()->set_name("y");
  aha::write_file_atomically(path, model.SerializeAsString());
}

// For the examples: a ConvNeXt, an untrained explainer of it, an image.
void write_example(const std::string& folder) {
  aha::make_directories(folder);
  const auto& architecture = aha::architecture_named("convnext_mini");
  const auto& family = aha::family_of(architecture);
  auto config = family.changed(architecture.config, "image_size=16:depths=1,1:widths=4,8", "tiny");
  config["classes"] = 3;
  const auto network = family.make(config, "tiny");
  network->initialize(1);
  network->set_layer_scale(0.5);
  aha::ModelCard card;
  card.summary = "a tiny network for tests";
  card.input.size = card.input.resize = network->image_size();
  card.classes = {"one", "two", "three"};
  aha::save_classifier(folder + "/target", *network, card);

  aha::Context context;
  const auto target = aha::load_classifier(folder + "/target", {}, context);
  const auto explainer = aha::make_explainer(*target, {}, context);
  aha::ModelCard explained;
  explained.summary = "an untrained explainer for tests";
  explained.input = card.input;
  explained.classes = card.classes;
  explained.target = aha::ModelCard::TargetPart{"target", "convnext", target->info().sha256, {}};
  aha::save_explainer(folder + "/old/explainer", *explainer, explained);  // as cards were before
  explained.target->tensors = aha::fingerprint_of(*target);
  aha::save_explainer(folder + "/explainer", *explainer, explained);

  // The same weights in other files, as they are and in 16 bits.
  auto weights = aha::table_from_state(network->module());
  weights.metadata = {{"origin", "elsewhere"}};
  card.kind = "classifier";
  card.architecture = network->family();
  card.network = network->config_json();
  aha::write_model(folder + "/same", card, weights);
  for (auto& [name, view] : weights.tensors)
    view = aha::view_from_tensor(aha::tensor_from_view(view).to(torch::kFloat16));
  aha::write_model(folder + "/half", card, weights);

  torch::manual_seed(1);
  aha::write_png(folder + "/image.png", aha::image_from_tensor(torch::rand({3, 20, 24})));
}

}  // namespace

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  try {
    for (const char* part : {"/tiny", "/fewer", "/larger", "/good", "/broken"})
      aha::make_directories(folder + part);
    write_tiny_model(folder + "/tiny", 32, {"ant", "bee", "cat", "dog", "elk"});
    write_tiny_model(folder + "/fewer", 32, {"ant", "bee", "cat"});
    write_tiny_model(folder + "/larger", 64, {"ant", "bee", "cat", "dog", "elk"});
    write_encoder(folder + "/dinov3_vits16.safetensors");
    write_images(folder);
    write_script(folder + "/colors.pt");
    write_onnx(folder + "/network.onnx");
    write_onnx_transformer(folder + "/transformer.onnx");
    write_example(folder + "/example");
  } catch (const aha::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
