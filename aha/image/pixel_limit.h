// The largest images that files may hold.
#pragma once

namespace aha {

// From now on images with more pixels are refused, whatever ReadOptions say; set once by the program.
void set_max_megapixels(double megapixels);

}  // namespace aha
