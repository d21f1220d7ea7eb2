// One explanation on one white sheet, for a slide or a paper: the photo with what the network sees of it
// marked, the map over that part, the curves behind its score beside those of a random map.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aha/image/heatmap.h"
#include "aha/image/image.h"

namespace aha {

// A probability at each tenth of the pixels; point i has i tenths removed.
struct SheetCurves {
  double deletion = 0, insertion = 0;  // areas
  std::vector<double> removed_top, removed_bottom;
};

struct SummarySheet {
  Image photo;
  Box seen;                       // the part that the network sees, in pixels of the photo
  std::span<const float> values;  // the map of that part (height, width), row-major
  int width = 0, height = 0;
  std::string title, probability;             // "Egyptian cat", "81.3 %"
  std::string subtitle;                       // below it, in gray: the method, the network, what it took
  std::string caption;                        // below the photo: the file
  std::optional<SheetCurves> curves, random;  // absent = no diagram
};

// Input error where the photo or the map has no pixels, or the network sees none of the photo.
Image summary_sheet(const SummarySheet& sheet, const HeatOptions& heat = {});

}  // namespace aha
