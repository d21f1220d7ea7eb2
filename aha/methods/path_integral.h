// Integrals along the straight path from a baseline to an input, by sampling.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aha/networks/classifier.h"

namespace aha {

struct PathPoint {
  double place, weight;  // place in [0, 1]; the weights sum to 1
};

// inclusive: equal weights, both ends included, as public attention code has it; midpoint: the middles of
// equal pieces, error falls with count^2; gauss-legendre: exact for polynomials of degree 2 count - 1.
const std::vector<std::string> kPathRules = {"inclusive", "midpoint", "gauss-legendre"};
std::vector<PathPoint> path_points(int count, const std::string& rule);

// (x - b) * sum over the points of weight * gradient(b + place * (x - b)), for x (B, ...) and any b that
// expands to it. The gradient is asked for many points at once, `images` (N) says whose each of them is.
using PathGradient = std::function<Tensor(const Tensor& points, const Tensor& images)>;
Tensor integrated_gradient(const Tensor& x, const Tensor& baseline, const std::vector<PathPoint>& path,
                           const PathGradient& gradient);

// The class row of the last block's attention gradient averaged over the path, then relu and mean over heads:
// (B, T). What the paper's ViT tables call IG, and the weights of trans-att and bi-att. Cost: path.size()
// forward passes an image, and backward passes through the last block.
Tensor integrated_attention_rows(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                 const Tensor& baseline, const std::vector<PathPoint>& path,
                                 const Context& context);

}  // namespace aha
