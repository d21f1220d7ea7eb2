// A network's numbers and a weight file: parameters and buffers by name.
//
// Registered names are the canonical ones, so that a network is its own list of expected keys.
#pragma once

#include <torch/nn/module.h>

#include <map>

#include "aha/tensor/tensor.h"

namespace aha {

std::map<std::string, std::vector<int64_t>> state_shapes(const torch::nn::Module& network);

// Input error that names the tensor and counts the numbers that are not finite.
void check_finite(const Tensor& tensor, std::string_view name, std::string_view what);

// Copies every tensor in, converted to the network's own type. Input error, before anything is changed, that
// names missing and unexpected keys, wrong shapes, and tensors with NaN or infinity.
void load_state(torch::nn::Module& network, const TensorTable& table, std::string_view what);

// Views that keep the network's tensors alive; write_safetensors takes it as it is.
TensorTable table_from_state(const torch::nn::Module& network);

int64_t parameter_count(const torch::nn::Module& network);  // buffers do not count

// Eval mode, and no weight asks for a gradient.
void freeze(torch::nn::Module& network);

}  // namespace aha
