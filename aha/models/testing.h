// Small networks with seeded weights and numbers by a rule, for tests.
#pragma once

#include <map>
#include <string>

#include "aha/models/convnext.h"
#include "aha/models/vit.h"

namespace aha::testing_nets {

// Numbers by a rule: tensor k (rank of its name, bytewise) has at flat index i  base + amp * sin(0.37 i + 1.3
// k + 0.1), with base, amp = 0, 0.08; 1, 0.1 for one-dimensional weights; 0.5, 0.1 for layer scales.
TensorTable golden_table(const std::map<std::string, std::vector<int64_t>>& shapes);

// sin(0.013 i + 0.5)
Tensor golden_input(std::vector<int64_t> shape);

// 8 pixels, patch 4, width 8, two blocks of two heads, three classes; seeded weights large enough to matter.
Vit tiny_vit();
// 16 pixels, widths 4 and 8, one block each, three classes.
ConvNext tiny_convnext();

}  // namespace aha::testing_nets
