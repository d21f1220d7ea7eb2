// Many maps of one image, or of several, on one white sheet: the photo on the left, the maps over it in a
// grid on the right, what is to be said of each below it, one legend of the colors at the end.
//
// Each photo is a block of its own; blocks stand below each other. A sheet is at most kSheetWidth pixels
// wide: a longer list of maps gets more columns up to six, then more rows, all
// of nearly equal length. A photo of a quarter of its place
// or less is enlarged by a whole number without smoothing, so that its pixels are seen; maps are smooth.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "aha/image/heatmap.h"
#include "aha/image/image.h"

namespace aha {

constexpr int kSheetWidth = 1600;

struct SheetMap {
  std::span<const float> values;  // (height, width), row-major
  int width = 0, height = 0;
  std::string name,
      options;  // "ig", "steps=20"; in a line each where one is too short, shortened in the middle
  std::string score, cost;  // "Ins-Del 0.334", "1 F + 1 B, 5 ms"
  bool best = false;        // framed, its score in the color of the frame
};

struct SheetBlock {
  Image image;
  std::string title;               // below the photo, large
  std::vector<std::string> lines;  // below the title: the first in black, the others in gray
  std::vector<SheetMap> maps;
};

// `remark` stands beside the legend. Input error where there is no block, or a block without a map.
Image sheet_of(const std::vector<SheetBlock>& blocks, const std::string& remark,
               const HeatOptions& heat = {});

}  // namespace aha
