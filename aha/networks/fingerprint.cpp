#include "aha/networks/fingerprint.h"

#include "aha/tensor/torch.h"

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/parallel.h"
#include "aha/networks/network_classifier.h"
#include "aha/networks/preprocess.h"
#include "aha/nn/module_state.h"

namespace aha {
namespace {

// Of the weights as they are, or rounded to a type of 16 bits.
std::string hash_of(const TensorTable& table, std::optional<at::ScalarType> rounded) {
  const std::vector<std::string> names = table.names();
  std::vector<std::string> lines(names.size());
  parallel_for(std::ssize(names), [&](int64_t i, int) {
    const TensorView& view = table.at(names[i]);
    Tensor values = tensor_from_view(view).to(torch::kFloat32).contiguous();
    if (rounded) values = values.to(*rounded).to(torch::kFloat32);
    const std::span<const float> floats(values.data_ptr<float>(), static_cast<size_t>(values.numel()));
    lines[i] = fmt::format("{} {} {}\n", names[i], text_from_shape(view.shape),
                           sha256_of_bytes(std::as_bytes(floats)));
  });
  const std::string all = fmt::format("{}", fmt::join(lines, ""));
  return sha256_of_bytes(std::as_bytes(std::span(all.data(), all.size())));
}

TensorTable weights_of(Network& network) {
  return table_from_state(network.module());
}

int64_t count_of(const TensorTable& table) {
  int64_t values = 0;
  for (const auto& [name, view] : table.tensors) values += view.numel();
  return values;
}

}  // namespace

Fingerprint fingerprint_of(Network& network) {
  const torch::NoGradGuard no_grad;
  const TensorTable table = weights_of(network);
  return {count_of(table), hash_of(table, std::nullopt), hash_of(table, torch::kFloat16),
          hash_of(table, torch::kBFloat16)};
}

std::optional<Fingerprint> fingerprint_of(Classifier& target) {
  auto* ours = dynamic_cast<NetworkClassifier*>(&target);
  if (!ours) return std::nullopt;
  return fingerprint_of(*ours->shared_network());
}

SameWeights same_weights(const Fingerprint& known, Classifier& target) {
  auto* ours = dynamic_cast<NetworkClassifier*>(&target);
  if (!ours) return SameWeights::kNo;
  const torch::NoGradGuard no_grad;
  const TensorTable table = weights_of(*ours->shared_network());
  if (count_of(table) != known.values) return SameWeights::kNo;
  const std::string found = hash_of(table, std::nullopt);
  if (found == known.sha256) return SameWeights::kYes;
  return found == known.f16 || found == known.bf16 ? SameWeights::kRounded : SameWeights::kNo;
}

nlohmann::ordered_json json_from(const Fingerprint& f) {
  return {{"values", f.values}, {"sha256", f.sha256}, {"f16", f.f16}, {"bf16", f.bf16}};
}

Fingerprint fingerprint_from_json(const nlohmann::json& json, const std::string& where) {
  if (!json.is_object()) throw input_error("{}: expected an object, found {}", where, printable(json.dump()));
  check_json_keys(json, {"values", "sha256", "f16", "bf16"}, where);
  return {member<int64_t>(json, "values", where), member<std::string>(json, "sha256", where),
          member<std::string>(json, "f16", where), member<std::string>(json, "bf16", where)};
}

}  // namespace aha
