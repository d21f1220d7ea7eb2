// trans-att: transition attention maps. The class token's attention as the state of a chain that walks down
// the blocks, r <- r + r mean_heads(A_l), times the integrated gradient of the last attention.
//
// variant=official begins with the last block's class row and goes on with the block below it. variant=mda,
// of the code that the paper's tables most probably come from, applies the last block a second time.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/path_integral.h"

namespace aha {
namespace {

class TransitionAttention : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("variant", variant_, "mda: the last block counts twice; official: once, as the authors have it")
        .choices({"mda", "official"})
        .add("start", start_, "lowest block that the chain reaches, from 0")
        .range(0, 1000)
        .add("steps", steps_, "places on the path of the gradient, both ends included")
        .range(1, 100000);
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    blocks_ = blocks_with_attention(*target_);
    if (start_ >= blocks_)
      throw input_error("method trans-att: expected start in 0..{}, found {}", blocks_ - 1, start_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const auto states =
        follow_class_row(*target_, pixels, classes, {AttentionVisit::Gradient::kNone, start_},
                         [&](const Tensor& row, int block, const Tensor& a, const Tensor&) {
                           return transition_step(row, a, block == blocks_ - 1, variant_ == "mda");
                         });  // (B, T)
    const auto weights =
        integrated_attention_rows(*target_, pixels, classes, baseline_color(*target_, "zero", pixels),
                                  path_points(steps_, "inclusive"), context);
    return {map_of_tokens(states * weights, target_->prefix_tokens(), pixels),
            Passes{1.0 + steps_, static_cast<double>(steps_) / blocks_}};
  }

 private:
  std::string variant_ = "mda";
  int start_ = 0, steps_ = 20, blocks_ = 0;
};

}  // namespace

MethodRecord trans_att_method() {
  return {"trans-att",
          "transition attention: a chain of attentions, times the integrated gradient of the last one",
          "Yuan et al. 2021, Explaining information flow inside vision transformers using Markov chain",
          "attention",
          has_attention,
          [] { return std::unique_ptr<Method>(new TransitionAttention); },
          "The paper's tables most probably used variant=mda with start=0. The authors' own code counts the "
          "last block once and has start=4 in all its experiments but deletion and insertion."};
}

}  // namespace aha
