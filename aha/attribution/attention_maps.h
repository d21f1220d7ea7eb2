// The attention family as plain tensor functions of one image and one block.
//
// A (heads, Q, T) is a block's attention behind its softmax, rows = queries; G = d y_t / d A. Q = T, or less
// where the other rows of G are zero. Token 0 is the class token, `prefix` tokens come before the patches.
//
// Most methods give each block a matrix M_l and read the class token's row of (I + M_{L-1}) ... (I + M_0).
// From the last block down this needs a row instead of a matrix: r = e_0, then r <- r + r M_l. Rows beyond Q
// are never asked for: r is zero there.
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

// ---- matrices of a block, (Q, T) ----

Tensor mean_attention(const Tensor& attention);  // mean_heads A

// Rollout (Abnar and Zuidema 2020) and Transformer Attribution: rownorm(M + I).
Tensor with_skip(const Tensor& matrix);

// Generic attribution (Chefer et al., ICCV 2021): relu(mean_heads(G * A)); or mean_heads relu(G * A), as the
// authors' notebook and Transformer Attribution have it.
enum class HeadRule { kMeanFirst, kReluFirst };
Tensor attention_times_gradient(const Tensor& attention, const Tensor& gradient, HeadRule rule);

// Beyond Intuition (Chen et al. 2023): sum_k I_k A_k, where head k counts I_k = mean |A_k^T G_k| over the T x
// T entries, divided by the sum over heads.
Tensor head_importance(const Tensor& attention, const Tensor& gradient);  // (heads)
Tensor attention_by_importance(const Tensor& attention, const Tensor& gradient);

// r M: (T), (Q, T) -> (T)
Tensor row_times(const Tensor& row, const Tensor& matrix);

// Transition attention (Yuan et al. 2021): r mean_heads(A) of the last block, r + r mean_heads(A) of those
// below. `last_twice` treats the last block as one of those, too.
Tensor transition_step(const Tensor& row, const Tensor& attention, bool last_block, bool last_twice);

// ---- values of a block ----

// Grad-CAM on an attention: relu(mean_heads(a * q)) of the class row, (n). `pooled` averages q over the
// patches of a head first.
Tensor attention_cam(const Tensor& attention, const Tensor& gradient, int64_t prefix, bool pooled);

// LeGrad's share of one block: relu(G) averaged over heads and all T queries, (T).
Tensor legrad_share(const Tensor& gradient);

// Direct logit attribution's share of one block, gradients as AttentionVisit::Gradient::kDirect has them:
// what each token adds to the logit, A * G summed over heads and queries, (T). `relu` leaves the negative
// out.
Tensor direct_share(const Tensor& attention, const Tensor& gradient, bool relu);

// Integrated attention gradient of the class row: mean_heads relu(G), G (heads, T) averaged over the path
// before; (T).
Tensor integrated_row(const Tensor& path_mean_gradient);

}  // namespace aha
