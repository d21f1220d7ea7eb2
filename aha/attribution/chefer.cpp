#include "aha/attribution/chefer.h"

#include "aha/attribution/class_row.h"

namespace aha {

Tensor chefer_values(Classifier& target, const Tensor& pixels, const Tensor& classes, HeadRule rule) {
  if (rule == HeadRule::kMeanFirst)
    if (const auto found = target.relevance(pixels, classes, {})) return found->patches;
  const auto rows = follow_class_row(target, pixels, classes, {},
                                     [&](const Tensor& row, int, const Tensor& a, const Tensor& g) {
                                       return row + row_times(row, attention_times_gradient(a, g, rule));
                                     });
  return rows.slice(1, target.prefix_tokens());
}

}  // namespace aha
