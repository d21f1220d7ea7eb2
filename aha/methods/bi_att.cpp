// bi-att: "Beyond Intuition", a perception R = I, R <- R + M_l R from block `start` on, times the integrated
// gradient of the last attention (the reasoning feedback); class row.
//
// variant=heads: M_l averages the heads by importance, |A^T G| (attention_maps.h). variant=tokens: M_l =
// mean_heads(A_l) diag(|v_j| / |z_j|), z_j a token that enters the block and v_j what its values become
// behind the output projection; R has no negative entries.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/class_row_method.h"
#include "aha/methods/method_records.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

class BeyondIntuition : public ClassRowMethod {
 public:
  BeyondIntuition() : ClassRowMethod("heads") {}

  Fields fields() override {
    return fields_with({"heads", "tokens"},
                       "what scales attention: the importance of heads, or the size of tokens",
                       "first block that counts, from 1; 0 = 4 (heads), 6 (tokens) of 12 blocks");
  }

  void prepare(const MethodContext& context) override {
    ClassRowMethod::prepare(context);
    if (start_ > blocks_)
      throw input_error("method bi-att: expected start in 1..{}, found {}", blocks_, start_);
    if (start_ == 0) start_ = 1 + (heads() ? 3 : 5) * blocks_ / 12;
  }

 private:
  bool heads() const { return variant_ == "heads"; }
  int blocks_back() const override { return heads() ? blocks_ - start_ + 1 : 0; }
  Tensor class_row(const Tensor& pixels, const Tensor& classes, const Context& context) override {
    return heads() ? by_heads(pixels, classes) : by_tokens(pixels, context);
  }

  Tensor by_heads(const Tensor& pixels, const Tensor& classes) {
    return follow_class_row(*target_, pixels, classes, {AttentionVisit::Gradient::kLogit, start_ - 1},
                            [](const Tensor& row, int, const Tensor& a, const Tensor& g) {
                              return row + row_times(row, attention_by_importance(a, g));
                            });
  }

  Tensor by_tokens(const Tensor& pixels, const Context& context) {
    std::vector<std::string> names;  // three of each block, last block first
    for (int l = blocks_; l-- >= start_;) {
      const auto block = fmt::format("block.{}", l);
      names.insert(names.end(), {block + ".attention", block + ".value_out",
                                 l == 0 ? "embed" : fmt::format("block.{}", l - 1)});
    }
    const auto B = pixels.size(0);
    std::vector<Tensor> rows;
    for (int64_t b = 0; b < B; ++b) {
      context.cancel->check();
      const OneThread one_thread;  // the same bits for any number of threads
      const torch::NoGradGuard no_grad;
      const auto values = tapped_values(*target_, pixels.narrow(0, b, 1), names);
      auto row = torch::zeros({values[0].size(3)}, pixels.options());
      row[0] = 1;
      for (size_t i = 0; i < values.size(); i += 3) {
        const auto size = values[i + 1][0].norm(2, 1) / values[i + 2][0].norm(2, 1);  // (T)
        row = row + row_times(row, mean_attention(values[i][0])) * size;
      }
      rows.push_back(row);
    }
    return torch::stack(rows);
  }
};

}  // namespace

MethodRecord bi_att_method() {
  return {"bi-att",
          "attention weighted by its heads' importance or its tokens' size, times the integrated gradient",
          "Chen et al. 2023, Beyond Intuition: rethinking token attributions inside transformers",
          "attention",
          has_attention,
          [] { return std::unique_ptr<Method>(new BeyondIntuition); },
          "The paper's tables used variant=heads with start=4. The authors' ViT script calls variant=tokens "
          "with start=7. Networks of another depth than 12 begin at the same share of their blocks, which is "
          "this project's choice."};
}

}  // namespace aha
