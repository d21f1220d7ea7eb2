// The CAM family as plain tensor functions: features a (B, C, h, w), their gradients q = d y_t / d a, raw
// maps (B, h, w) out; cam_finished() ends them.
#pragma once

#include "aha/attribution/cam.h"

namespace aha {

// Grad-CAM (Selvaraju et al. 2017): w_c = mean_ij(q_c).
inline Tensor gradcam_raw(const Tensor& features, const Tensor& gradients) {
  return weighted_channels(features, gradients.mean({2, 3}));
}

// Grad-CAM++ (Chattopadhay et al. 2018): w_c = sum_ij alpha_c,ij relu(q_c,ij) with
// alpha = q^2 / (2 q^2 + q^3 sum_ij(a_c) + 1e-6), 0 where q is. Features with negative values can bring the
// denominator near 0: kept as the public implementation has it.
inline Tensor gradcam_plus_alpha(const Tensor& features, const Tensor& q) {
  const Tensor q2 = q * q, sums = features.sum({2, 3}, true);
  return torch::where(q == 0, torch::zeros_like(q), q2 / (2 * q2 + sums * q2 * q + 1e-6));
}
inline Tensor gradcam_plus_raw(const Tensor& features, const Tensor& gradients) {
  const Tensor alpha = gradcam_plus_alpha(features, gradients);
  return weighted_channels(features, (alpha * gradients.clamp_min(0)).sum({2, 3}));
}

// HiResCAM (Draelos and Carin 2020): sum_c a_c q_c, place by place.
inline Tensor hirescam_raw(const Tensor& features, const Tensor& gradients) {
  return (features * gradients).sum(1);
}

// LayerCAM (Jiang et al. 2021): the same with the positive gradients alone.
inline Tensor layercam_raw(const Tensor& features, const Tensor& gradients) {
  return hirescam_raw(features, gradients.clamp_min(0));
}

// Score-CAM (Wang et al. 2020): channels (n, h, w) as masks (n, H, W) in [0, 1]. The corners of a channel lie
// on the corners of the image here, unlike in the map that is shown.
inline Tensor scorecam_masks(const Tensor& channels, int64_t height, int64_t width) {
  const Tensor large = at::upsample_bilinear2d(channels.unsqueeze(1), {height, width}, true).squeeze(1);
  const Tensor low = large.amin({1, 2}, true);
  return (large - low) / (large.amax({1, 2}, true) - low + 1e-8);
}
// scores (B, C): logits of the class behind each mask -> (B, C).
inline Tensor scorecam_weights(const Tensor& scores) {
  return torch::softmax(scores, 1);
}

// Ablation-CAM (Desai and Ramaswamy 2020): w_c = (y - y_c) / y, clean (B) being y, ablated (B, C) being y_c.
inline Tensor ablationcam_weights(const Tensor& clean, const Tensor& ablated) {
  return (clean.unsqueeze(1) - ablated) / clean.unsqueeze(1);
}
// What the public implementation puts in a channel's place: 0 if the smallest feature is exactly 0 (behind a
// ReLU), else 1e7 below the smallest.
inline double library_ablation(const Tensor& features) {
  const auto smallest = features.min().item<float>();
  return smallest == 0 ? 0 : smallest - 1e7f;
}
// Features (C, h, w) pooled, row c with channel c replaced: (C, C).
inline Tensor ablated_pools(const Tensor& features, double value) {
  Tensor rows = features.mean({1, 2}).repeat({features.size(0), 1});
  rows.diagonal().fill_(value);
  return rows;
}

}  // namespace aha
