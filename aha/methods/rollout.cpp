// rollout: attention multiplied through the blocks, half of each block being its skip connection. It does not
// depend on the class.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class Rollout : public Method {
 public:
  Fields fields() override {
    return Fields().add("first", first_, "first block that counts, from 0").range(0, 1000);
  }

  void prepare(const MethodContext& context) override {
    target_ = &context.target;
    taps_ = attention_taps(*target_);
    if (first_ >= static_cast<int>(taps_.size()))
      throw input_error("method rollout: expected first in 0..{}, found {}", taps_.size() - 1, first_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t>,
                        const Context&) override {
    const auto patches =
        rollout_patches(tapped_values(*target_, pixels, taps_), first_, target_->prefix_tokens());
    return {upsampled(grid_from_patches(patches), pixels.size(2), pixels.size(3)), Passes{1, 0}};
  }

 private:
  Classifier* target_ = nullptr;
  std::vector<std::string> taps_;
  int first_ = 0;
};

}  // namespace

MethodRecord rollout_method() {
  return {"rollout",
          "attention multiplied through all blocks",
          "Abnar and Zuidema 2020, arXiv:2005.00928",
          "attention",
          has_attention,
          [] { return std::unique_ptr<Method>(new Rollout); },
          "",
          false};
}

}  // namespace aha
