// transformer-attribution: relevance is propagated from the logit down to every attention (block_relevance.h
// has the rules); C_l = mean_heads relu(G_l * R_l), then as rollout does it: row 0 of B_{L-1} ... B_start,
// B_l = rownorm(C_l + I).
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class TransformerAttribution : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("start", start_, "first block that counts, from 0")
        .range(0, 1000)
        .add("rows", rows_, "normalized: each block's rows sum to 1; plain: C_l + I as it is")
        .choices({"normalized", "plain"});
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    const int blocks = blocks_with_attention(*target_);
    if (start_ >= blocks)
      throw input_error("method transformer-attribution: expected start in 0..{}, found {}", blocks - 1,
                        start_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const auto step = [&](const Tensor& row, int, const Tensor& relevance, const Tensor& gradient) {
      context.cancel->check();
      const auto c = attention_times_gradient(relevance, gradient, HeadRule::kReluFirst);
      return rows_ == "plain" ? row + row_times(row, c) : row_times(row, with_skip(c));
    };
    const auto rows = follow_class_row(pixels.size(0), step, [&](const AttentionVisitor& visitor) {
      target_->visit_attention_relevance(pixels, classes, start_, visitor);
    });
    return {map_of_tokens(rows, target_->prefix_tokens(), pixels), Passes{1, 2}};
  }

 private:
  std::string rows_ = "normalized";
  int start_ = 0;
};

}  // namespace

MethodRecord transformer_attribution_method() {
  return {
      "transformer-attribution",
      "relevance propagated to every attention, times its gradient, multiplied through the blocks",
      "Chefer et al. 2021, arXiv:2012.09838",
      "a vision transformer of a known architecture",
      has_open_blocks,
      [] { return std::unique_ptr<Method>(new TransformerAttribution); },
      "Not in the paper's tables. The propagation of relevance is counted as a second backward pass. "
      "rows=normalized is the formula and the form of the MDA code; the authors' ViT code has rows=plain, "
      "and start=1 for segmentation. Rules for layer scale, rotary positions, SwiGLU and a second head "
      "are this project's."};
}

}  // namespace aha
