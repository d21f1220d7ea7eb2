#include "aha/methods/class_row_method.h"

#include "aha/attribution/target_gradient.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/path_integral.h"

namespace aha {

Fields ClassRowMethod::fields_with(const std::vector<std::string>& variants, const std::string& of_variant,
                                   const std::string& of_start) {
  return Fields()
      .add("variant", variant_, of_variant)
      .choices(variants)
      .add("start", start_, of_start)
      .range(0, 1000)
      .add("steps", steps_, "places on the path of the gradient, both ends included")
      .range(1, 100000);
}

void ClassRowMethod::prepare(const MethodContext& context) {
  Method::prepare(context);
  blocks_ = blocks_with_attention(*target_);
}

Attribution ClassRowMethod::attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                                      const Context& context) {
  const auto row = class_row(pixels, classes, context);
  const auto weights =
      integrated_attention_rows(*target_, pixels, classes, baseline_color(*target_, "zero", pixels),
                                path_points(steps_, "inclusive"), context);
  return {map_of_tokens(row * weights, target_->prefix_tokens(), pixels),
          Passes{1.0 + steps_, static_cast<double>(steps_ + blocks_back()) / blocks_}};
}

}  // namespace aha
