// The class token's row, followed from the last block down to the patches (attention_maps.h).
#pragma once

#include <functional>

#include "aha/networks/classifier.h"

namespace aha {

// The next row (T) from the row so far, which begins as e_0, and what is shown of a block. Called from
// several threads, each with libtorch held to one.
using RowStep =
    std::function<Tensor(const Tensor& row, int block, const Tensor& attention, const Tensor& gradient)>;

// visit() with the visitor it is to call: rows of all images after the last call, (B, T).
Tensor follow_class_row(int64_t images, const RowStep& step,
                        const std::function<void(const AttentionVisitor&)>& visit);

// The same of target.visit_attention.
Tensor follow_class_row(Classifier& target, const Tensor& pixels, const Tensor& classes,
                        const AttentionVisit& visit, const RowStep& step);

}  // namespace aha
