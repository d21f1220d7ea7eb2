// Direct logit attribution of a vision transformer: the class logit, above the mean of all logits, is a sum
// of what every block wrote into the class token, and attention writes sums over tokens. With the final
// norm's standard deviation held fixed each patch has a share in it, from the forward pass alone:
//
//   g       = d logit / d (class token behind the last block), that norm's std fixed
//   c_l,j   = sum_h A_l,h[class, j] (v_l,h,j . W_o,l,h^T g)
//   value_j = sum_l c_l,j
//
// Cost beside the forward pass: D^2 + T D multiply-adds per block.
#pragma once

#include "aha/networks/classifier.h"

namespace aha {

struct LogitAttribution {
  int blocks = 0;     // of the last ones; 0 = all
  bool relu = false;  // shares of a head below 0 count as 0
};

// pixels (B, 3, H, W), classes (B) -> one value per patch, (B, n), row-major. An image's values do not depend
// on its batch mates.
Tensor logit_values(Classifier& target, const Tensor& pixels, const Tensor& classes,
                    const LogitAttribution& options = {});

// The same, block by block, (B, blocks, n): every block, negative shares too.
Tensor logit_shares(Classifier& target, const Tensor& pixels, const Tensor& classes);

}  // namespace aha
