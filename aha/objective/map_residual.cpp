#include "aha/objective/map_residual.h"

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "aha/tensor/torch.h"

#include "aha/base/error.h"

namespace aha {
namespace {

std::unique_ptr<torch::optim::Optimizer> optimizer_named(const std::string& name, const Tensor& numbers,
                                                         double lr) {
  using namespace torch::optim;
  if (name == "adam") return std::make_unique<Adam>(std::vector{numbers}, AdamOptions(lr));
  return std::make_unique<SGD>(std::vector{numbers}, SGDOptions(lr).momentum(name == "momentum" ? 0.9 : 0));
}

}  // namespace

int usual_residual_grid(int64_t side) {
  return static_cast<int>(std::max<int64_t>(1, side <= 64 ? side / 2 : side / 8));
}

Fields fields(MapResidualOptions& o) {
  return Fields()
      .add("map-grid", o.grid,
           "numbers a side that are added to the map; 0 = 28 at 224 pixels, half the side up to 64 pixels")
      .range(0, 4096)
      .add("map-lr", o.lr, "how far a step moves them; scores have a range of about 25")
      .range(1e-6, 1000)
      .add("optimizer", o.optimizer, "how a step follows the gradient of these numbers")
      .choices({"adam", "sign", "gradient", "momentum"});
}

MapResidual::MapResidual(Tensor start, const MapResidualOptions& options)
    : start_(std::move(start)), optimizer_name_(options.optimizer) {
  check_shape(start_, {1, -1, -1}, "map to refine");
  const int64_t side = std::min(start_.size(1), start_.size(2)),
                grid = options.grid > 0 ? options.grid : usual_residual_grid(side);
  if (grid > side) throw input_error("map-grid: expected 1..{} for this map, found {}", side, grid);
  numbers_ = torch::zeros({1, 1, grid, grid}, start_.options()).requires_grad_(true);
  optimizer_ = optimizer_named(optimizer_name_, numbers_, options.lr);
}

Tensor MapResidual::map() const {
  return start_ + at::upsample_bilinear2d(numbers_, {start_.size(1), start_.size(2)}, false).squeeze(1);
}

void MapResidual::step() {
  Tensor& gradient = numbers_.mutable_grad();
  if (optimizer_name_ == "sign")
    gradient.sign_();
  else if (optimizer_name_ != "adam")
    gradient.div_(gradient.square().mean().sqrt().clamp_min(1e-30));
  optimizer_->step();
}

}  // namespace aha
