// trans-att: transition attention maps. The class token's attention as the state of a chain that walks down
// the blocks, r <- r + r mean_heads(A_l), times the integrated gradient of the last attention.
//
// variant=official begins with the last block's class row and goes on with the block below it. variant=mda,
// of the code that the paper's tables most probably come from, applies the last block a second time.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/base/error.h"
#include "aha/methods/class_row_method.h"
#include "aha/methods/method_records.h"

namespace aha {
namespace {

class TransitionAttention : public ClassRowMethod {
 public:
  TransitionAttention() : ClassRowMethod("mda") {}

  Fields fields() override {
    return fields_with({"mda", "official"},
                       "mda: the last block counts twice; official: once, as the authors have it",
                       "lowest block that the chain reaches, from 0");
  }

  void prepare(const MethodContext& context) override {
    ClassRowMethod::prepare(context);
    if (start_ >= blocks_)
      throw input_error("method trans-att: expected start in 0..{}, found {}", blocks_ - 1, start_);
  }

 private:
  Tensor class_row(const Tensor& pixels, const Tensor& classes, const Context&) override {
    return follow_class_row(*target_, pixels, classes, {AttentionVisit::Gradient::kNone, start_},
                            [&](const Tensor& row, int block, const Tensor& a, const Tensor&) {
                              return transition_step(row, a, block == blocks_ - 1, variant_ == "mda");
                            });
  }
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
