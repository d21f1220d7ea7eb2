// legrad: how much each block's attention could raise the class score read out right after that block.
//
// y_l = head(norm(pool(tokens after block l)))_t, q_l = d y_l / d A_l, e_l = relu(q_l) averaged over heads
// and queries; the map is the sum of e_l over the last `layers` blocks.
//
// Ins-Del on six photos with ViT-Tiny, last two blocks and all: pool=mean 0.284, 0.266; pool=cls 0.205,
// 0.258.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class LeGrad : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("layers", layers_, "how many of the last blocks; 0 = all")
        .range(0, 1000)
        .add("pool", pool_, "what the head reads: the mean of all tokens, or the class token")
        .choices({"mean", "cls"});
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    blocks_ = blocks_with_attention(*target_);
    if (layers_ > blocks_)
      throw input_error("method legrad: expected layers in 0..{}, found {}", blocks_, layers_);
    if (layers_ == 0) layers_ = blocks_;
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    using Gradient = AttentionVisit::Gradient;
    const auto sums = follow_class_row(
        *target_, pixels, classes,
        {pool_ == "mean" ? Gradient::kReadOutMean : Gradient::kReadOutClass, blocks_ - layers_},
        [&](const Tensor& sum, int block, const Tensor&, const Tensor& g) {
          return block == blocks_ - 1 ? legrad_share(g) : sum + legrad_share(g);
        });  // (B, T)
    return {min_max(map_of_tokens(sums, target_->prefix_tokens(), pixels)),
            Passes{1, static_cast<double>(layers_) / blocks_}};
  }

 private:
  int layers_ = 2, blocks_ = 0;
  std::string pool_ = "mean";
};

}  // namespace

MethodRecord legrad_method() {
  return {"legrad",
          "gradients of intermediate class scores by their block's attention",
          "Bousselham et al. 2025, arXiv:2404.03214",
          "attention of a vision transformer",
          is_vision_transformer,
          [] { return std::unique_ptr<Method>(new LeGrad); },
          "The authors' code is for CLIP; its use on a classifier is reconstructed. The run times in the "
          "paper's tables point to the last two blocks, the default of that code, as is pool=mean."};
}

}  // namespace aha
