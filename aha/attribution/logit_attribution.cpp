#include "aha/attribution/logit_attribution.h"

#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"

namespace aha {

Tensor logit_values(Classifier& target, const Tensor& pixels, const Tensor& classes,
                    const LogitAttribution& options) {
  const int last = blocks_with_attention(target) - 1;
  const int first = options.blocks > 0 ? last + 1 - options.blocks : 0;
  if (first == 0 && !options.relu)
    if (const auto found = target.relevance(pixels, classes, {}, TokenRelevance::kDirect))
      return found->patches;
  const auto sums = follow_class_row(target, pixels, classes, {AttentionVisit::Gradient::kDirect, first},
                                     [&](const Tensor& sum, int block, const Tensor& a, const Tensor& g) {
                                       const Tensor share = direct_share(a, g, options.relu);
                                       return block == last ? share : sum + share;
                                     });
  return sums.slice(1, target.prefix_tokens());
}

Tensor logit_shares(Classifier& target, const Tensor& pixels, const Tensor& classes) {
  if (const auto found = target.relevance(pixels, classes, {}, TokenRelevance::kDirect))
    return found->by_block;
  // A row of all shares, (blocks, T), grows from the last block down.
  const auto shares = follow_class_row(target, pixels, classes, {AttentionVisit::Gradient::kDirect},
                                       [last = blocks_with_attention(target) - 1](
                                           const Tensor& row, int block, const Tensor& a, const Tensor& g) {
                                         const Tensor share = direct_share(a, g, false).unsqueeze(0);
                                         return block == last ? share : torch::cat({share, row});
                                       });
  return shares.slice(2, target.prefix_tokens());
}

}  // namespace aha
