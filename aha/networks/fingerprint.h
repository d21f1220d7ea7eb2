// What a network is known by, whichever file it came from: a hash of its canonical tensors.
//
//   line of a tensor = "NAME SHAPE sha256(its float32 bytes)\n", in the order of the names
//   sha256           = sha256 of all lines
//
// The same weights as .pth or safetensors, with the names of timm, torchvision or Hugging Face, have the same
// fingerprint. The hashes of the weights rounded to 16 bits tell a copy in half precision.
// Cost: three readings of the weights, tensors in parallel.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace aha {

class Classifier;
class Network;

struct Fingerprint {
  int64_t values = 0;  // of all tensors: two networks that differ here need no hash
  std::string sha256;
  std::string f16, bf16;  // sha256 of the same weights rounded to these types

  bool operator==(const Fingerprint&) const = default;
};
nlohmann::ordered_json json_from(const Fingerprint& fingerprint);
Fingerprint fingerprint_from_json(const nlohmann::json& json, const std::string& where);

Fingerprint fingerprint_of(Network& network);
// Nothing where its weights cannot be reached (TorchScript).
std::optional<Fingerprint> fingerprint_of(Classifier& target);

// Whether a target has the weights of this fingerprint.
enum class SameWeights { kNo, kRounded, kYes };
SameWeights same_weights(const Fingerprint& known, Classifier& target);

}  // namespace aha
