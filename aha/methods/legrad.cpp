// legrad: how much each block's attention could raise the class score read out right after that block.
//
// y_l = head(norm(pool(tokens after block l)))_t, q_l = d y_l / d A_l, e_l = relu(q_l) averaged over heads
// and queries; the map is the sum of e_l over the last `layers` blocks.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

bool is_vit(const MethodContext& context) {
  return context.target.prefix_tokens() > 0;
}

class LeGrad : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("layers", layers_, "how many of the last blocks; 0 = all")
        .range(0, 1000)
        .add("pool", pool_, "what the head reads: the class token, or the mean of all tokens")
        .choices({"cls", "mean"});
  }

  void prepare(const MethodContext& context) override {
    target_ = &context.target;
    const int depth = static_cast<int>(attention_taps(*target_).size());
    if (layers_ > depth)
      throw input_error("method legrad: expected layers in 0..{}, found {}", depth, layers_);
    const int first = layers_ == 0 ? 0 : depth - layers_;
    for (int l = first; l < depth; ++l) blocks_.push_back("block." + std::to_string(l));
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    const torch::AutoGradMode with_grad(true);
    std::vector<std::string> names;
    for (const auto& block : blocks_) names.insert(names.end(), {block, block + ".attention"});
    Taps taps(names);
    target_->logits(pixels.detach().clone().requires_grad_(true), &taps);
    Tensor sum;
    for (const auto& block : blocks_) {
      const auto score = chosen(read_out(taps.at(block)), classes).sum();
      const auto q =
          torch::autograd::grad({score}, {taps.at(block + ".attention")}, {}, /*retain_graph=*/true)[0];
      const auto share = legrad_patches(q, target_->prefix_tokens());  // (B, n)
      sum = sum.defined() ? sum + share : share;
    }
    return {min_max(upsampled(grid_from_patches(sum), pixels.size(2), pixels.size(3))), Passes{1, 1}};
  }

 private:
  Tensor read_out(Tensor tokens) {
    // One copy for each token that a head reads: a distilled network has two.
    if (pool_ == "mean") tokens = tokens.mean(1, true).expand({-1, target_->prefix_tokens(), -1});
    return target_->read_out(tokens);
  }

  Classifier* target_ = nullptr;
  std::vector<std::string> blocks_;
  int layers_ = 2;
  std::string pool_ = "cls";
};

}  // namespace

MethodRecord legrad_method() {
  return {"legrad",
          "gradients of intermediate class scores by their block's attention",
          "Bousselham et al. 2025, arXiv:2404.03214",
          "attention of a vision transformer",
          is_vit,
          [] { return std::unique_ptr<Method>(new LeGrad); }};
}

}  // namespace aha
