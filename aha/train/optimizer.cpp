#include "aha/train/optimizer.h"

#include "aha/tensor/torch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace aha {

Fields fields(OptimizerOptions& o) {
  return Fields()
      .add("optimizer", o.kind,
           "adamw; muon: orthogonal steps for the inner matrices, adamw for the rest; sgd with Nesterov "
           "momentum")
      .choices({"adamw", "muon", "sgd"})
      .add("weight-decay", o.weight_decay, "of matrices and filters; biases, norms and tokens do not decay")
      .range(0, 10)
      .add("beta1", o.beta1, "adamw: memory of the mean gradient")
      .range(0, 0.9999)
      .add("beta2", o.beta2, "adamw: memory of the squared gradient")
      .range(0, 0.99999)
      .add("momentum", o.momentum, "sgd, muon: memory of the gradient")
      .range(0, 0.9999);
}

// A matrix between wide layers: neither a table nor a depthwise filter, nor one that reads colors or writes
// classes.
bool is_inner_matrix(const std::vector<int64_t>& shape) {
  constexpr int64_t kNarrow = 32;
  if (shape.size() != 2 && !(shape.size() == 4 && shape[1] > 1)) return false;
  return shape[0] >= kNarrow &&
         std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>()) >= kNarrow;
}

Tensor orthogonalized(const Tensor& matrix) {
  const bool tall = matrix.size(0) > matrix.size(1);
  Tensor x = tall ? matrix.t().contiguous() : matrix;  // (short side, long side)
  x = x / (x.norm() + 1e-7);
  for (int i = 0; i < 5; ++i) {
    const Tensor square = torch::mm(x, x.t());
    x = torch::addmm(x, torch::addmm(square, square, square, -4.7750, 2.0315), x, 3.4445, 1);
  }
  return tall ? x.t() : x;
}

Optimizer::Optimizer(FlatParameters& parameters, OptimizerOptions options)
    : parameters_(parameters), options_(std::move(options)) {
  first_ = torch::zeros_like(parameters.values());
  if (options_.kind != "sgd") second_ = torch::zeros_like(parameters.values());
}

void Optimizer::adam(Tensor values, const Tensor& gradients, Tensor first, Tensor second,
                     double learning_rate, int64_t step) const {
  const double b1 = options_.beta1, b2 = options_.beta2;
  first.mul_(b1).add_(gradients, 1 - b1);
  second.mul_(b2).addcmul_(gradients, gradients, 1 - b2);
  const auto t = static_cast<double>(step + 1);
  const double correct1 = 1 - std::pow(b1, t), correct2 = 1 - std::pow(b2, t);
  values.addcdiv_(first, (second.sqrt() / std::sqrt(correct2)).add_(1e-8), -learning_rate / correct1);
}

void Optimizer::step(double learning_rate, int64_t step) {
  const torch::NoGradGuard no_grad;
  Tensor values = parameters_.values();
  Tensor gradients = parameters_.gradients();
  Tensor decaying = values.narrow(0, 0, parameters_.decayed());
  if (options_.kind == "muon") {
    decaying.mul_(1 - learning_rate * options_.weight_decay);
    for (const FlatParameters::Part& part : parameters_.parts()) {
      const auto of = [&](const Tensor& flat) { return flat.narrow(0, part.offset, part.count); };
      Tensor value = of(values), gradient = of(gradients), first = of(first_);
      if (!is_inner_matrix(part.shape)) {
        adam(value, gradient, first, of(second_), learning_rate, step);
        continue;
      }
      first.mul_(options_.momentum).add_(gradient, 1 - options_.momentum);
      const Tensor ahead = gradient.lerp(first, options_.momentum).view({part.shape[0], -1});
      const double adam_like = 0.2 * std::sqrt(static_cast<double>(std::max(ahead.size(0), ahead.size(1))));
      value.add_(orthogonalized(ahead).reshape(-1), -learning_rate * adam_like);
    }
  } else if (options_.kind == "adamw") {
    decaying.mul_(1 - learning_rate * options_.weight_decay);
    adam(values, gradients, first_, second_, learning_rate, step);
  } else {
    gradients.narrow(0, 0, parameters_.decayed()).add_(decaying, options_.weight_decay);
    first_.mul_(options_.momentum).add_(gradients);
    values.add_(gradients, -learning_rate).add_(first_, -learning_rate * options_.momentum);
  }
}

std::vector<std::pair<std::string, Tensor>> Optimizer::state() const {
  std::vector<std::pair<std::string, Tensor>> out = {{"first", first_}};
  if (second_.defined()) out.emplace_back("second", second_);
  return out;
}

MovingAverage::MovingAverage(FlatParameters& parameters, double decay)
    : parameters_(parameters), decay_(decay), values_(parameters.values().clone()) {}

void MovingAverage::update(int64_t step) {
  const torch::NoGradGuard no_grad;
  const auto t = static_cast<double>(step);
  const double decay = std::min(decay_, (1 + t) / (10 + t));
  values_.lerp_(parameters_.values(), 1 - decay);
}

MovingAverage::Shown::Shown(MovingAverage& average)
    : average_(average), trained_(average.parameters_.values().clone()) {
  const torch::NoGradGuard no_grad;
  average.parameters_.values().copy_(average.values_);
}

MovingAverage::Shown::~Shown() {
  const torch::NoGradGuard no_grad;
  average_.parameters_.values().copy_(trained_);
}

}  // namespace aha
