// An ONNX file as data: nodes in the order they run in, constants as tensors. Reading it executes nothing.
//
// What a hostile file can do is bounded: tensors are as large as the bytes that the file holds for them,
// external data is read from the file's own folder alone, a node reads only what stands before it, and a file
// of many empty parts is refused before memory is taken for them. Knows nothing of torch: it is fuzzed
// (tests/fuzz).
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "aha/weights/tensor_table.h"

namespace aha {

using OnnxAttribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, TensorView>;

struct OnnxNode {
  std::string op, name;
  std::vector<int> inputs, outputs;  // values by number; -1 = left out
  std::map<std::string, OnnxAttribute> attributes;
};

struct OnnxGraph {
  std::string file;
  int opset = 0;
  std::vector<std::string> values;  // their names, by number
  std::vector<OnnxNode> nodes;
  std::map<int, TensorView> constants;  // weights by value
  std::vector<int> inputs, outputs;
  std::vector<std::vector<int64_t>> input_shapes;  // of each input; -1 = free
};

// Input error for what is no ONNX file, for a truncated or inconsistent one, and for a graph with parts that
// this program cannot run (subgraphs, operators of other domains).
OnnxGraph read_onnx_graph(const std::string& path);
// `file` is where they come from: external data stands beside it.
OnnxGraph onnx_graph_from_bytes(std::span<const std::byte> bytes, const std::string& file);

// A tensor in a file of its own (the test data of the ONNX project).
TensorView read_onnx_tensor(const std::string& path);

}  // namespace aha
