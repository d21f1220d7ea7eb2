// raw-attention: how the class token attends to the patches in the last block, mean over heads. It does not
// depend on the class.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class RawAttention : public Method {
 public:
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    const auto rows = follow_class_row(*target_, pixels, classes,
                                       {AttentionVisit::Gradient::kNone, blocks_with_attention(*target_) - 1},
                                       [](const Tensor& row, int, const Tensor& a, const Tensor&) {
                                         return row_times(row, mean_attention(a));
                                       });
    return {map_of_tokens(rows, target_->prefix_tokens(), pixels), Passes{1, 0}};
  }
};

}  // namespace

MethodRecord raw_attention_method() {
  return {"raw-attention",
          "the class token's attention in the last block",
          "Vaswani et al. 2017, arXiv:1706.03762",
          "attention",
          has_attention,
          [] { return std::unique_ptr<Method>(new RawAttention); },
          "Not in the paper's tables; a floor for the methods that do more with attention.",
          false};
}

}  // namespace aha
