#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/onnx/program.h"
#include "aha/testing/checks.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A graph written by hand.
class GraphWriter {
 public:
  explicit GraphWriter(int opset = 13) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
  }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }
  void input(const std::string& name, const std::vector<int64_t>& shape) {
    auto* value = graph().add_input();
    value->set_name(name);
    auto* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(onnx::TensorProto::FLOAT);
    for (const int64_t size : shape) {
      auto* dim = type->mutable_shape()->add_dim();
      if (size > 0)
        dim->set_dim_value(size);
      else
        dim->set_dim_param("N");
    }
  }
  void output(const std::string& name) { graph().add_output()->set_name(name); }
  onnx::TensorProto& weight(const std::string& name, const Tensor& tensor) {
    auto* proto = graph().add_initializer();
    proto->set_name(name);
    for (const int64_t size : tensor.sizes()) proto->add_dims(size);
    proto->set_data_type(tensor.scalar_type() == at::kLong ? onnx::TensorProto::INT64
                                                           : onnx::TensorProto::FLOAT);
    const Tensor flat = tensor.contiguous();
    proto->set_raw_data(flat.data_ptr(), flat.nbytes());
    return *proto;
  }
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::string& output) {
    auto* proto = graph().add_node();
    proto->set_op_type(op);
    for (const auto& name : inputs) proto->add_input(name);
    proto->add_output(output);
    return *proto;
  }
  std::string bytes() const { return model_.SerializeAsString(); }
  std::string save(const std::string& name) const {
    const std::string path = (fs::path(checks::fresh_folder("onnx_" + name)) / "model.onnx").string();
    write_file_atomically(path, bytes());
    return path;
  }

 private:
  onnx::ModelProto model_;
};

// conv 3x3 -> relu -> mean over pixels -> linear
GraphWriter small_network(int64_t images) {
  torch::manual_seed(3);
  GraphWriter w;
  w.input("x", {images, 3, 8, 8});
  w.weight("conv", torch::randn({4, 3, 3, 3}));
  w.weight("bias", torch::randn({4}));
  w.weight("head", torch::randn({5, 4}));
  auto& conv = w.node("Conv", {"x", "conv", "bias"}, "a");
  auto* pads = conv.add_attribute();
  pads->set_name("pads");
  pads->set_type(onnx::AttributeProto::INTS);
  for (int i = 0; i < 4; ++i) pads->add_ints(1);
  w.node("Relu", {"a"}, "b");
  w.node("GlobalAveragePool", {"b"}, "c");
  w.weight("shape", torch::tensor({1, 4}, at::kLong));
  w.node("Reshape", {"c", "shape"}, "d");
  auto& gemm = w.node("Gemm", {"d", "head"}, "y");
  auto* transposed = gemm.add_attribute();
  transposed->set_name("transB");
  transposed->set_type(onnx::AttributeProto::INT);
  transposed->set_i(1);
  w.output("y");
  return w;
}

std::string refusal(const std::string& path) {
  try {
    const OnnxProgram program(read_onnx_graph(path));
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
}

TEST(OnnxProgram, ComputesWhatItsNodesSay) {
  const OnnxProgram program(read_onnx_graph(small_network(1).save("small")));
  torch::manual_seed(5);
  const Tensor x = torch::randn({1, 3, 8, 8});
  const auto& constants = program.constants();
  const Tensor maps = torch::relu(torch::conv2d(x, constants.at(0), constants.at(1), 1, 1));
  const Tensor expected = torch::matmul(maps.mean(std::vector<int64_t>{2, 3}), constants.at(2).t());
  EXPECT_LE((program.run(x) - expected).abs().max().item<double>(), 1e-5);
}

TEST(OnnxProgram, GraphsForOneImageTakeSeveral) {
  const OnnxProgram program(read_onnx_graph(small_network(1).save("batch")));
  torch::manual_seed(5);
  const Tensor x = torch::randn({3, 3, 8, 8});
  const Tensor together = program.run(x);
  for (int64_t b = 0; b < 3; ++b)
    EXPECT_LE((program.run(x.narrow(0, b, 1))[0] - together[b]).abs().max().item<double>(), 1e-5);
}

TEST(OnnxProgram, GoesOnFromAValueThatSeparates) {
  const OnnxProgram program(read_onnx_graph(small_network(1).save("cut")));
  const Tensor x = torch::rand({1, 3, 8, 8});
  Tensor maps;
  int cut = -1;
  const Tensor whole = program.run(x, [&](int value, Tensor& tensor) {
    if (program.graph().values[static_cast<size_t>(value)] != "b") return;
    cut = value;
    maps = tensor;
  });
  ASSERT_TRUE(program.separates(cut));
  EXPECT_TRUE(program.run_from(cut, maps).equal(whole));
}

TEST(OnnxGraph, RefusesWhatIsNoModel) {
  const std::string good = small_network(1).save("good");
  const std::string bytes = small_network(1).bytes();
  const std::string bad = (fs::path(good).parent_path() / "bad.onnx").string();
  for (const size_t size : {size_t{1}, bytes.size() / 2, bytes.size() - 1}) {
    write_file_atomically(bad, bytes.substr(0, size));
    EXPECT_NE(refusal(bad), "") << size;
  }
  write_file_atomically(bad, "");
  EXPECT_THAT(refusal(bad), HasSubstr("graph"));
  EXPECT_EQ(refusal(good), "");
}

TEST(OnnxGraph, NamesOperatorsThatAreNotSupported) {
  auto w = small_network(1);
  w.graph().mutable_node(1)->set_op_type("Frobnicate");
  EXPECT_THAT(refusal(w.save("unknown")), HasSubstr("Frobnicate"));
}

TEST(OnnxGraph, ReadsNothingThatIsMadeLater) {
  auto w = small_network(1);
  w.graph().mutable_node(0)->set_input(0, "d");
  EXPECT_THAT(refusal(w.save("cycle")), HasSubstr("'d', which nothing before it makes"));
}

TEST(OnnxGraph, TensorsAreAsLargeAsTheirBytes) {
  auto w = small_network(1);
  w.graph().mutable_initializer(0)->set_dims(0, int64_t{1} << 40);
  EXPECT_THAT(refusal(w.save("huge")), HasSubstr("weight conv"));
  w.graph().mutable_initializer(0)->set_dims(0, -4);
  EXPECT_THAT(refusal(w.save("negative")), HasSubstr("weight conv"));
}

TEST(OnnxGraph, ShapesAskForBoundedMemory) {
  GraphWriter w;
  w.input("x", {1, 3, 8, 8});
  w.weight("shape", torch::tensor({int64_t{1} << 30, int64_t{1} << 30}, at::kLong));
  w.node("ConstantOfShape", {"shape"}, "y");
  w.output("y");
  EXPECT_THAT(refusal(w.save("bomb")), HasSubstr("ConstantOfShape y"));
}

TEST(OnnxGraph, ExternalDataStaysInItsFolder) {
  auto w = small_network(1);
  auto& weight = *w.graph().mutable_initializer(1);
  const std::string bytes = weight.raw_data();
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = weight.add_external_data();
  location->set_key("location");
  location->set_value("bias.bin");
  const std::string path = w.save("external");
  write_file_atomically((fs::path(path).parent_path() / "bias.bin").string(), bytes);
  EXPECT_EQ(refusal(path), "");
  for (const char* outside : {"../bias.bin", "/etc/hostname", "a/../../b", ""}) {
    location->set_value(outside);
    EXPECT_THAT(refusal(w.save("external")), HasSubstr("beside the model")) << outside;
  }
}

// norm -> linear -> GELU -> SiLU, each as exporters write it out.
GraphWriter written_out_layers() {
  torch::manual_seed(8);
  GraphWriter w;
  w.input("x", {2, 5, 6});
  const auto number = [&](const char* name, double value) {
    w.weight(name, torch::tensor(value, at::kFloat));
  };
  number("eps", 1e-3);
  number("two", 2);
  number("root", std::sqrt(2.0));
  number("one", 1);
  number("half", 0.5);
  w.weight("gain", torch::randn({6}));
  w.weight("offset", torch::randn({6}));
  w.weight("matrix", torch::randn({6, 4}));
  w.weight("bias", torch::randn({4}));
  const auto mean = [&](const char* of, const char* to) {
    auto* axes = w.node("ReduceMean", {of}, to).add_attribute();
    axes->set_name("axes");
    axes->set_type(onnx::AttributeProto::INTS);
    axes->add_ints(-1);
  };
  mean("x", "mean");
  w.node("Sub", {"x", "mean"}, "centered");
  w.node("Pow", {"centered", "two"}, "square");
  mean("square", "variance");
  w.node("Add", {"variance", "eps"}, "sum");
  w.node("Sqrt", {"sum"}, "deviation");
  w.node("Div", {"centered", "deviation"}, "normed");
  w.node("Mul", {"normed", "gain"}, "scaled");
  w.node("Add", {"scaled", "offset"}, "norm");
  w.node("MatMul", {"norm", "matrix"}, "product");
  w.node("Add", {"bias", "product"}, "linear");
  w.node("Div", {"linear", "root"}, "narrow");
  w.node("Erf", {"narrow"}, "erf");
  w.node("Add", {"erf", "one"}, "share");
  w.node("Mul", {"linear", "share"}, "twice");
  w.node("Mul", {"twice", "half"}, "gelu");
  w.node("Sigmoid", {"gelu"}, "gate");
  w.node("Mul", {"gelu", "gate"}, "y");
  w.output("y");
  return w;
}

TEST(OnnxProgram, OfEqualNumbersTheLowerIndexComesFirst) {
  GraphWriter w;
  w.input("x", {1, 64});
  w.weight("k", torch::tensor({int64_t{64}}, at::kLong));
  auto& top = w.node("TopK", {"x", "k"}, "values");
  top.add_output("order");
  w.output("order");
  const OnnxProgram program(read_onnx_graph(w.save("ties")));
  EXPECT_TRUE(program.run(torch::ones({1, 64})).equal(torch::arange(64).unsqueeze(0)));
}

TEST(OnnxProgram, LayersThatWereWrittenOutAreOneStepEach) {
  const OnnxProgram program(read_onnx_graph(written_out_layers().save("layers")));
  EXPECT_EQ(program.nodes_behind(program.graph().inputs).size(), 4u);
  const auto constant = [&](const char* name) {
    const auto& names = program.graph().values;
    return program.constants().at(static_cast<int>(std::ranges::find(names, name) - names.begin()));
  };
  torch::manual_seed(5);
  const Tensor x = torch::randn({2, 5, 6});
  const Tensor centered = x - x.mean(-1, true);
  const Tensor norm = centered / (centered.square().mean(-1, true) + 1e-3).sqrt() * constant("gain");
  const Tensor linear = torch::matmul(norm + constant("offset"), constant("matrix")) + constant("bias");
  const Tensor gelu = linear * (torch::erf(linear / std::sqrt(2.0)) + 1) * 0.5;
  EXPECT_LE((program.run(x) - gelu * torch::sigmoid(gelu)).abs().max().item<double>(), 1e-5);
}

TEST(OnnxProgram, WhatSomebodyElseReadsIsNotFusedAway) {
  auto w = written_out_layers();
  w.output("product");
  w.output("share");
  const OnnxProgram program(read_onnx_graph(w.save("read_twice")));
  torch::manual_seed(5);
  const auto found = program.run_all({torch::randn({2, 5, 6})});
  EXPECT_EQ(found[1].sizes(), (std::vector<int64_t>{2, 5, 4}));
  EXPECT_TRUE(found[2].defined());
}

TEST(OnnxGraph, ManyEmptyPartsAreRefusedBeforeMemoryIsTaken) {
  // A graph (field 7) of five million empty nodes (field 1), ten megabytes.
  std::string nodes;
  for (int i = 0; i < 5'000'000; ++i) nodes += std::string("\x0a\x00", 2);
  std::string length;
  for (size_t left = nodes.size(); left > 0; left >>= 7)
    length += static_cast<char>((left & 0x7f) | (left >> 7 ? 0x80 : 0));
  const std::string path = checks::fresh_folder("onnx_parts") + "/model.onnx";
  write_file_atomically(path, "\x3a" + length + nodes);
  EXPECT_THAT(refusal(path), HasSubstr("4000000 parts"));
}

TEST(OnnxGraph, DeepNestingIsRefused) {
  // A node (field 1) with an attribute (5) with a graph (6) with a node ... inside the model's graph (7).
  std::string inside;
  const auto wrapped = [&](int field) {
    std::string length;
    for (size_t left = inside.size(); left > 0; left >>= 7)
      length += static_cast<char>((left & 0x7f) | (left >> 7 ? 0x80 : 0));
    inside = std::string(1, static_cast<char>(field << 3 | 2)) +
             (length.empty() ? std::string(1, '\0') : length) + inside;
  };
  for (int depth = 0; depth < 20'000; ++depth) {
    wrapped(6);
    wrapped(5);
    wrapped(1);
  }
  wrapped(7);
  const std::string path = checks::fresh_folder("onnx_deep") + "/model.onnx";
  write_file_atomically(path, inside);
  EXPECT_THAT(refusal(path), HasSubstr("expected an ONNX model"));
}

TEST(OnnxGraph, AbsurdShapesAreRefused) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{0, int64_t{1} << 62, int64_t{1} << 62}, std::vector<int64_t>(40, 1),
        std::vector<int64_t>{int64_t{1} << 40, 3}, std::vector<int64_t>{-1, -4}}) {
    auto w = small_network(1);
    auto& weight = *w.graph().mutable_initializer(0);
    weight.clear_dims();
    for (const int64_t size : shape) weight.add_dims(size);
    EXPECT_THAT(refusal(w.save("shape")), HasSubstr("weight conv")) << shape.size();
  }
}

TEST(OnnxGraph, CyclesAreRefused) {
  GraphWriter w;
  w.input("x", {1, 3});
  w.node("Add", {"x", "b"}, "a");
  w.node("Relu", {"a"}, "b");
  w.output("b");
  EXPECT_THAT(refusal(w.save("cycle")), HasSubstr("'b', which nothing before it makes"));
}

TEST(OnnxGraph, ConstantsOfManyFilesInOneTakeBoundedMemory) {
  // A hundred times a gigabyte, if each was kept.
  GraphWriter w;
  w.input("x", {1, 3});
  w.weight("shape", torch::tensor({int64_t{1} << 28}, at::kLong));
  for (int i = 0; i < 100; ++i) w.node("ConstantOfShape", {"shape"}, fmt::format("c{}", i));
  w.node("Relu", {"x"}, "y");
  w.output("y");
  EXPECT_EQ(refusal(w.save("constants")), "");
}

TEST(OnnxOperators, AreListedInTheDocs) {
  const std::string page = read_file("docs/onnx.md");
  for (const auto& name : onnx_operator_names()) EXPECT_THAT(page, HasSubstr("`" + name + "`"));
  EXPECT_THAT(page, HasSubstr(fmt::format("{} operators:", onnx_operator_names().size())));
}

// ---- the ONNX project's own tests of its operators ----

struct NodeTests {
  int passed = 0;
  std::vector<std::string> failed, refused;  // refused: with supported operators
};

Tensor comparable(const Tensor& x) {
  return x.to(at::kDouble);
}

std::string difference(const Tensor& found, const Tensor& expected) {
  if (found.sizes() != expected.sizes()) return "another shape";
  const Tensor a = comparable(found), b = comparable(expected);
  const bool close = torch::allclose(a, b, 1e-3, 1e-5, true);
  return close ? "" : fmt::format("off by {}", (a - b).abs().max().item<double>());
}

// Refused ones stand in the XML report with their reasons.
void run_node_test(const fs::path& folder, NodeTests& tests) {
  const std::string name = folder.filename().string();
  std::optional<OnnxProgram> program;
  std::vector<Tensor> inputs, expected, found;
  try {
    program.emplace(read_onnx_graph((folder / "model.onnx").string()));
    const fs::path data = folder / "test_data_set_0";
    for (int i = 0; fs::exists(data / fmt::format("input_{}.pb", i)); ++i)
      inputs.push_back(tensor_from_onnx(read_onnx_tensor((data / fmt::format("input_{}.pb", i)).string())));
    for (int i = 0; fs::exists(data / fmt::format("output_{}.pb", i)); ++i)
      expected.push_back(
          tensor_from_onnx(read_onnx_tensor((data / fmt::format("output_{}.pb", i)).string())));
    found = program->run_all(inputs);
  } catch (const Error& error) {
    ::testing::Test::RecordProperty(name, error.what());
    if (std::string(error.what()).find("of its operators are not supported") == std::string::npos)
      tests.refused.push_back(name);
    return;
  }
  for (size_t i = 0; i < expected.size(); ++i)
    if (const auto what = difference(found[i], expected[i]); !what.empty()) {
      tests.failed.push_back(fmt::format("{}: {}", name, what));
      return;
    }
  ++tests.passed;
}

// aha/onnx/refused_node_tests.txt: names, one a line, under their reasons.
std::vector<std::string> node_tests_that_are_refused() {
  std::vector<std::string> names;
  std::istringstream lines(read_file("aha/onnx/refused_node_tests.txt"));
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line[0] != '#') names.push_back(line);
  return names;
}

TEST(OnnxOperators, PassTheNodeTestsOfTheOnnxProject) {
  const fs::path all = "/usr/share/libonnx-testdata/data/node";
  if (!fs::exists(all)) GTEST_SKIP() << "Debian's libonnx-testdata is not installed";
  NodeTests tests;
  for (const auto& entry : fs::directory_iterator(all))
    if (entry.is_directory()) run_node_test(entry.path(), tests);
  EXPECT_THAT(tests.failed, ::testing::IsEmpty());
  EXPECT_THAT(tests.refused, ::testing::UnorderedElementsAreArray(node_tests_that_are_refused()));
  EXPECT_GE(tests.passed, 640);  // of 932
}

}  // namespace
}  // namespace aha
