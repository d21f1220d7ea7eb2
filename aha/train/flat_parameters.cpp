#include "aha/train/flat_parameters.h"

#include "aha/tensor/torch.h"

namespace aha {

FlatParameters::FlatParameters(torch::nn::Module& network) {
  const torch::NoGradGuard no_grad;
  std::vector<std::pair<std::string, Tensor>> matrices, others;
  for (const auto& item : network.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const Tensor& p = item.value();
    // A class token (1, 1, D) or a position table (1, T, D) has three axes but is no matrix: nothing is
    // multiplied by it.
    const bool matrix = p.dim() >= 2 && p.dim() != 3;
    (matrix ? matrices : others).emplace_back(item.key(), p);
  }
  int64_t total = 0;
  for (auto* list : {&matrices, &others}) {
    for (auto& [name, parameter] : *list) {
      parts_.push_back({name, total, parameter.numel(), parameter.sizes().vec()});
      parameters_.push_back(parameter);
      total += parameter.numel();
    }
    if (list == &matrices) decayed_ = total;
  }
  TORCH_CHECK(total > 0, "a network without trainable parameters");
  values_ = torch::empty({total}, parameters_[0].options().requires_grad(false));
  gradients_ = torch::zeros_like(values_);
  for (size_t i = 0; i < parts_.size(); ++i) {
    Tensor& parameter = parameters_[i];
    const Tensor place = values_.narrow(0, parts_[i].offset, parts_[i].count).view(parameter.sizes());
    place.copy_(parameter);
    parameter.set_data(place);
    parameter.mutable_grad() =
        gradients_.narrow(0, parts_[i].offset, parts_[i].count).view(parameter.sizes());
  }
}

void FlatParameters::zero_gradients() {
  gradients_.zero_();
}

double FlatParameters::gradient_norm() const {
  return gradients_.norm().item<double>();
}

void FlatParameters::clip(double norm) {
  const double found = gradient_norm();
  if (found > norm) gradients_.mul_(norm / (found + 1e-6));
}

std::string FlatParameters::first_not_finite(const Tensor& flat) const {
  for (const Part& part : parts_)
    if (!torch::isfinite(flat.narrow(0, part.offset, part.count)).all().item<bool>()) return part.name;
  return "";
}

}  // namespace aha
