// legrad: how much each block's attention could raise the class score read out right after that block.
//
// y_l = head(norm(pool(tokens after block l)))_t, q_l = d y_l / d A_l, e_l = relu(q_l) averaged over heads
// and queries; the map is the sum of e_l over the last `layers` blocks. It is the one method here that needs
// more of the target than logits and taps: its final norm and head on tokens of earlier blocks.
#include "aha/base/error.h"
#include "aha/models/attention_maps.h"
#include "aha/methods/map_shape.h"
#include "aha/methods/records.h"
#include "aha/models/target_gradient.h"
#include "aha/models/vit.h"

namespace aha {
namespace {

bool is_vit(const MethodContext& context) {
  return dynamic_cast<VitClassifier*>(&context.target) != nullptr;
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
    target_ = dynamic_cast<VitClassifier*>(&context.target);
    const int depth = target_->network()->config.depth;
    if (layers_ > depth)
      throw input_error("method legrad: expected layers in 0..{}, found {}", depth, layers_);
    const int first = layers_ == 0 ? 0 : depth - layers_;
    for (int l = first; l < depth; ++l) blocks_.push_back("block." + std::to_string(l));
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>, const Context&) override {
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
    return {min_max(enlarged(grid_from_patches(sum), pixels.size(2), pixels.size(3))), Passes{1, 1}};
  }

 private:
  Tensor read_out(Tensor tokens) {
    auto& network = target_->network();
    // One copy a head: a distilled network has two.
    if (pool_ == "mean") tokens = tokens.mean(1, true).expand({-1, network->prefix_tokens(), -1});
    return network->classify(network->norm(tokens));
  }

  VitClassifier* target_ = nullptr;
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
