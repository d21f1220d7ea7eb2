#include "aha/attribution/class_row.h"

#include "aha/tensor/one_thread_each.h"

namespace aha {

Tensor follow_class_row(int64_t images, const RowStep& step,
                        const std::function<void(const AttentionVisitor&)>& visit) {
  std::vector<Tensor> rows(images);
  visit([&](int64_t image, int block, const Tensor& attention, const Tensor& gradient) {
    const OneThread one_thread;
    const torch::NoGradGuard no_grad;
    Tensor& row = rows[image];
    if (!row.defined()) {
      row = torch::zeros({attention.size(2)}, attention.options());
      row[0] = 1;
    }
    row = step(row, block, attention, gradient);
  });
  return torch::stack(rows);
}

Tensor follow_class_row(Classifier& target, const Tensor& pixels, const Tensor& classes,
                        const AttentionVisit& visit, const RowStep& step) {
  return follow_class_row(pixels.size(0), step, [&](const AttentionVisitor& visitor) {
    target.visit_attention(pixels, classes, visit, visitor);
  });
}

}  // namespace aha
