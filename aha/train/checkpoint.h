// The whole state of a run in one file, written whole or not at all.
//
// A safetensors file: tensors by name (network.*, optimizer.*, average), and a JSON object in its metadata
// (step, best score, settings). Random numbers are counter based, so that the step number is all of their
// state, and a run that continues from here ends with the same bits as one that was never interrupted. A
// checksum over all of it is stored too: a file that a disk or a copy has changed is refused.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "aha/tensor/tensor.h"

namespace aha {

struct Checkpoint {
  std::vector<std::pair<std::string, Tensor>> tensors;
  nlohmann::json state = nlohmann::json::object();
};

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Copies the stored numbers into the tensors of `into` and returns the JSON state. Nothing where the file
// does not exist; input error where it does not fit.
std::optional<nlohmann::json> read_checkpoint(const std::string& path, const Checkpoint& into);

// Settings that decide a result must be the same before and after. Input error that names the first
// difference.
void check_same_settings(const nlohmann::json& stored, const nlohmann::json& given, const std::string& path);

}  // namespace aha
