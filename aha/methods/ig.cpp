// ig: integrated gradients.
//
// space=input, the textbook method: |sum over channels of (x - b) * mean_a d y_t(b + a (x - b)) / d x|.
// space=attention, what the paper's ViT tables call IG: the gradient by the last block's attention, averaged
// along the path; relu, mean over heads, class row. No factor of the input.
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/path_integral.h"

namespace aha {
namespace {

class IntegratedGradients : public Method {
 public:
  Fields fields() override {
    auto rules = kPathRules;
    rules.insert(rules.begin(), "auto");
    return Fields()
        .add("space", space_, "input: the textbook method; attention: what the paper's ViT tables call IG")
        .choices({"input", "attention"})
        .add("steps", steps_, "places on the path; 0 = 50 (input), 20 (attention)")
        .range(0, 100000)
        .add("rule", rule_, "where they lie; auto: midpoint (input), inclusive = both ends too (attention)")
        .choices(rules)
        .add("baseline", baseline_,
             "where the path begins: zero of the normalized input, as public code has it; the mean color; "
             "black")
        .choices({"zero", "mean", "black"})
        .add("signed", signed_, "rank negative evidence last instead of by its magnitude (input space)");
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    if (space_ == "attention" && !has_attention(context))
      throw input_error(
          "method ig:space=attention needs attention, which {} ({}) does not offer; ig:space=input fits it",
          target_->info().name, target_->info().architecture);
    if (steps_ == 0) steps_ = space_ == "input" ? 50 : 20;
    if (rule_ == "auto") rule_ = space_ == "input" ? "midpoint" : "inclusive";
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const double forwards = steps_;
    if (space_ == "input") return {input_maps(pixels, classes, context), Passes{forwards, forwards}};
    const auto rows =
        integrated_attention_rows(*target_, pixels, classes, baseline_color(*target_, baseline_, pixels),
                                  path_points(steps_, rule_), context);
    return {map_of_tokens(rows, target_->prefix_tokens(), pixels),
            Passes{forwards, forwards / blocks_with_attention(*target_)}};
  }

 private:
  Tensor input_maps(const Tensor& pixels, const Tensor& classes, const Context& context) {
    const auto std = channel_std(*target_, pixels);
    const auto evidence =
        integrated_gradient(pixels, baseline_color(*target_, baseline_, pixels), path_points(steps_, rule_),
                            [&](const Tensor& x, const Tensor& images) {
                              context.cancel->check();
                              // by pixels, as the path is
                              return input_gradient(*target_, x, classes.index_select(0, images)) / std;
                            });
    const auto map = evidence.sum(1);  // (B, H, W)
    return signed_ ? map : map.abs();
  }

  std::string space_ = "input", rule_ = "auto", baseline_ = "zero";
  int steps_ = 0;
  bool signed_ = false;
};

}  // namespace

MethodRecord ig_method() {
  return {"ig",
          "integrated gradients, of the input or of the last attention",
          "Sundararajan et al. 2017, arXiv:1703.01365",
          "gradient",
          fits_any,
          [] { return std::unique_ptr<Method>(new IntegratedGradients); },
          "The run times in the paper's ViT tables say that their IG is ig:space=attention, a by-product of "
          "trans-att; space=input is the textbook method."};
}

}  // namespace aha
