// Integrals along the straight path from a baseline to an input, by sampling.
#pragma once

#include <functional>
#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

// `count` places in [0, 1]: the middles of equal pieces (error falls with count^2), or both ends included as
// public attention code has it.
std::vector<double> path_places(int count, bool ends_included);

// (x - b) * mean over the places of gradient(b + place * (x - b)).
Tensor integrated_gradient(const Tensor& x, const Tensor& baseline, const std::vector<double>& places,
                           const std::function<Tensor(const Tensor&)>& gradient);

}  // namespace aha
