// The figures of experiments: a metric over rows, and what the relaxation of the order looks like.
#pragma once

#include <string>

#include "aha/base/context.h"
#include "aha/experiments/outcome.h"
#include "aha/experiments/recipe.h"
#include "aha/image/image.h"
#include "aha/networks/classifier.h"

namespace aha {

// One line for each block, with the 95 % interval at each point, and the paper's as a dashed line where it
// has the rows. SVG.
std::string chart_svg(const ChartStep& chart, const Recipe& recipe, const Outcome& outcome);

// One image and its map; soft top-k masks of its regions, a row for each temperature and the hard order as
// the last one, a column for each share that is removed; at the end of each row the deletion image of the
// largest share up to a half. Rows get the contrast of the mask at half of the regions (mean over the top
// half minus the bottom half).
Image soft_masks_image(const SoftMasksStep& step, const Image& image, const Tensor& map,
                       const Context& context, Outcome& outcome);

}  // namespace aha
