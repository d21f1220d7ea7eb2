#include "aha/nn/taps.h"

#include <algorithm>

#include "aha/base/error.h"

namespace aha {

bool Taps::wants(std::string_view name) const {
  return std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
}

void Taps::offer(const std::string& name, const Tensor& tensor) {
  if (wants(name)) kept_[name] = tensor;
}

const Tensor& Taps::at(const std::string& name) const {
  const auto found = kept_.find(name);
  if (found != kept_.end()) return found->second;
  std::vector<std::string> kept;
  for (const auto& [kept_name, tensor] : kept_) kept.push_back(kept_name);
  throw unknown_name_error("tap", name, kept);
}

void Taps::check(const std::vector<std::string>& available, std::string_view network) const {
  for (const auto& name : wanted_)
    if (std::find(available.begin(), available.end(), name) == available.end())
      throw unknown_name_error(std::string(network) + " tap", name, available);
}

}  // namespace aha
