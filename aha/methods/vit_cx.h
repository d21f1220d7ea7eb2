// ViT-CX's parts as plain functions (vit_cx.cpp has the method).
//
// A mask is a feature map brought to the image's size and scaled to 0..1. Bringing to size is linear and
// leaves constants alone, so masks stay on the patch grid, scaled by the range of their enlarged form, and
// are enlarged where pixels are needed. Their inner products are those of the enlarged masks: m^T (U^T U) m',
// U^T U a Kronecker product of two g x g matrices.
#pragma once

#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

// grids (N, g, g) -> (N', g, g): (v - min) / (max - min), min and max over the enlarged map (H, W). Constant
// maps are left out.
Tensor unit_masks(const Tensor& grids, int64_t height, int64_t width);

// 1 - cosine of every two masks as they are at H x W, (N, N) float64; a mask without length is at distance 1.
Tensor mask_distances(const Tensor& masks, int64_t height, int64_t width);

// Agglomerative clustering with complete linkage: the two nearest clusters are merged as long as their
// largest distance is below the threshold. distances (N, N) -> the cluster of each, numbered by their first
// members. Nearest neighbor chain: O(N^2).
std::vector<int64_t> complete_linkage(const Tensor& distances, double threshold);

// Sums of the masks of a cluster, as masks: (N, g, g) -> (clusters, g, g).
Tensor cluster_masks(const Tensor& masks, const std::vector<int64_t>& cluster, int64_t height, int64_t width);

// (1 / N) sum_k scores_k m_k / sum_j m_j at every pixel, 0 where no mask shows it. masks (N, g, g) -> (H, W)
Tensor weighed_masks(const Tensor& masks, const Tensor& scores, int64_t height, int64_t width);

}  // namespace aha
