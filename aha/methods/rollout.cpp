// rollout: attention multiplied through the blocks, half of each block being its skip connection: row 0 of
// B_{L-1} ... B_start, B_l = rownorm(mean_heads A_l + I). It does not depend on the class.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class Rollout : public Method {
 public:
  Fields fields() override {
    return Fields().add("start", start_, "first block that counts, from 0").range(0, 1000);
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    const int blocks = blocks_with_attention(*target_);
    if (start_ >= blocks)
      throw input_error("method rollout: expected start in 0..{}, found {}", blocks - 1, start_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    const auto rows = follow_class_row(*target_, pixels, classes, {AttentionVisit::Gradient::kNone, start_},
                                       [](const Tensor& row, int, const Tensor& a, const Tensor&) {
                                         return row_times(row, with_skip(mean_attention(a)));
                                       });
    return {map_of_tokens(rows, target_->prefix_tokens(), pixels), Passes{1, 0}};
  }

 private:
  int start_ = 0;
};

}  // namespace

MethodRecord rollout_method() {
  return {"rollout",
          "attention multiplied through all blocks",
          "Abnar and Zuidema 2020, arXiv:2005.00928",
          "attention",
          has_attention,
          [] { return std::unique_ptr<Method>(new Rollout); },
          "Not in the paper's tables. Public segmentation scripts have start=1.",
          false};
}

}  // namespace aha
