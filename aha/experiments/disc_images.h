// Images with a planted shortcut: a white disc at a random place in every image of one class (recipe.h).
// Writes FOLDER/list.csv (path, label, mask) with the images and masks beside it; an image without a disc has
// an empty mask.
#pragma once

#include "aha/base/context.h"
#include "aha/experiments/recipe.h"

namespace aha {

// Returns the number of images.
int64_t write_disc_images(const DiscStep& step, const std::string& folder, const Context& context);

}  // namespace aha
