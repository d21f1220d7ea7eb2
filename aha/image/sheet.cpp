#include "aha/image/sheet.h"

#include <algorithm>
#include <numeric>

#include "aha/base/error.h"
#include "aha/image/draw.h"
#include "aha/image/resize.h"
#include "aha/image/text.h"

namespace aha {
namespace {

constexpr Color kInk = {33, 37, 41}, kGray = {108, 117, 125}, kAccent = {0, 128, 110};
constexpr int kMargin = 40;                         // around everything
constexpr int kPhoto = 320;                         // width of the left column
constexpr int kGutter = 40;                         // between the photo and the maps
constexpr int kGap = 20;                            // between two maps
constexpr int kMostColumns = 6, kLeastColumns = 4;  // kLeastColumns: maps get no larger than with these
constexpr int kRowGap = 24;
constexpr int kLabelGap = 7, kOptionsGap = 8;
constexpr int kBetweenBlocks = 36;
constexpr int kBarWidth = 180, kBarHeight = 12, kBarGap = 10;
constexpr const char *kLow = "less important", *kHigh = "more important";

const TextStyle kTitle{24, kInk, true}, kLead{17, kInk}, kSmall{13, kGray}, kName{14, kInk, true},
    kScore{13, kInk}, kBestScore{13, kAccent, true};

struct Layout {
  int columns, tile, photo;  // sides in pixels
  int width() const { return kMargin + kPhoto + kGutter + columns * (tile + kGap) - kGap + kMargin; }
};

bool fits_beside_legend(const std::string& remark, int sheet_width) {
  return 2 * kMargin + text_width(kLow, kSmall) + kBarGap + kBarWidth + kBarGap + text_width(kHigh, kSmall) +
             kGutter + text_width(remark, kSmall) <=
         sheet_width;
}

// Of an image as wide as this in a place of `side`: a whole multiple where its pixels are large enough to be
// seen, so that all of them are equally wide.
int shown_side(int image_side, int side) {
  return image_side <= side / 4 ? side - side % image_side : side;
}

Layout layout_of(const std::vector<SheetBlock>& blocks) {
  const int widest = kSheetWidth - 2 * kMargin - kPhoto - kGutter;
  size_t maps = 0;
  Layout l{};
  int image_side = kSheetWidth;
  for (const auto& block : blocks) {
    maps = std::max(maps, block.maps.size());
    image_side = std::min(image_side, block.image.width);
  }
  const int count = static_cast<int>(maps), room = count <= 8 ? 4 : count <= 15 ? 5 : kMostColumns;
  const int rows = (count + room - 1) / room;
  l.columns = (count + rows - 1) / rows;  // rows of nearly equal length
  l.tile = shown_side(image_side, (widest + kGap) / room - kGap);
  l.photo = shown_side(image_side, kPhoto);
  return l;
}

// Name and options stand in one line where both fit.
bool fits_one_line(const SheetMap& map, const Layout& l) {
  return map.options.empty() ||
         text_width(map.name, kName) + kOptionsGap + text_width(map.options, kSmall) <= l.tile;
}

// Of each row of maps with their labels.
std::vector<int> row_heights(const SheetBlock& block, const Layout& l) {
  const int labels = kLabelGap + line_height(kName) + line_height(kScore) + line_height(kSmall);
  std::vector<int> heights((block.maps.size() + l.columns - 1) / l.columns, l.tile + labels);
  for (size_t i = 0; i < block.maps.size(); ++i)
    if (!fits_one_line(block.maps[i], l)) heights[i / l.columns] = l.tile + labels + line_height(kSmall);
  return heights;
}

int text_height(const SheetBlock& block) {
  int height = 12 + line_height(kTitle);
  for (size_t i = 0; i < block.lines.size(); ++i) height += line_height(i == 0 ? kLead : kSmall) + 2;
  return height;
}

int height_of(const SheetBlock& block, const Layout& l) {
  const auto rows = row_heights(block, l);
  const int grid = std::accumulate(rows.begin(), rows.end(), (static_cast<int>(rows.size()) - 1) * kRowGap);
  return std::max(grid, l.photo + text_height(block));
}

Image enlarged(const Image& image, int side) {
  return resized(image, side, side, side % image.width == 0 ? Filter::kNearest : Filter::kBicubic);
}

// One line, and the y of the next.
int line(Image& sheet, int x, int y, int width, const std::string& text, const TextStyle& style) {
  draw_text(sheet, x, y, shortened(text, width, style), style);
  return y + line_height(style);
}

void draw_map(Image& sheet, int x, int y, const SheetMap& map, const Image& photo, const Layout& l,
              const HeatOptions& heat) {
  constexpr int kFrame = 4;
  if (map.best) fill_box(sheet, x - kFrame, y - kFrame, l.tile + 2 * kFrame, l.tile + 2 * kFrame, kAccent);
  paste(sheet, x, y, overlay(photo, map.values, map.width, map.height, heat));
  y += l.tile + kLabelGap;
  const bool one_line = fits_one_line(map, l);
  const int behind = text_width(map.name, kName) + kOptionsGap;
  if (one_line)
    draw_text(sheet, x + behind, y + line_height(kName) - line_height(kSmall), map.options, kSmall);
  y = line(sheet, x, y, l.tile, map.name, kName);
  if (!one_line) y = line(sheet, x, y, l.tile, map.options, kSmall);
  y = line(sheet, x, y, l.tile, map.score, map.best ? kBestScore : kScore);
  line(sheet, x, y, l.tile, map.cost, kSmall);
}

void draw_block(Image& sheet, int y, const SheetBlock& block, const Layout& l, const HeatOptions& heat) {
  paste(sheet, kMargin, y, enlarged(block.image, l.photo));
  int below = line(sheet, kMargin, y + l.photo + 12, kPhoto, block.title, kTitle);
  for (size_t i = 0; i < block.lines.size(); ++i)
    below = line(sheet, kMargin, below, kPhoto, block.lines[i], i == 0 ? kLead : kSmall) + 2;
  const Image photo = enlarged(block.image, l.tile);
  const auto rows = row_heights(block, l);
  for (int i = 0; i < static_cast<int>(block.maps.size()); ++i) {
    if (i > 0 && i % l.columns == 0) y += rows[i / l.columns - 1] + kRowGap;
    draw_map(sheet, kMargin + kPhoto + kGutter + i % l.columns * (l.tile + kGap), y, block.maps[i], photo, l,
             heat);
  }
}

// The legend, and the remark at the right edge.
void draw_foot(Image& sheet, int y, const std::string& remark, const HeatOptions& heat) {
  const int down = (line_height(kSmall) - kBarHeight) / 2;
  int x = kMargin;
  draw_text(sheet, x, y, kLow, kSmall);
  x += text_width(kLow, kSmall) + kBarGap;
  paste(sheet, x, y + down, color_bar(kBarWidth, kBarHeight, heat));
  draw_text(sheet, x + kBarWidth + kBarGap, y, kHigh, kSmall);
  if (!fits_beside_legend(remark, sheet.width)) y += line_height(kSmall) + 4;
  draw_text(sheet, sheet.width - kMargin, y, shortened(remark, sheet.width - 2 * kMargin, kSmall), kSmall,
            Align::kRight);
}

}  // namespace

Image sheet_of(const std::vector<SheetBlock>& blocks, const std::string& remark, const HeatOptions& heat) {
  if (blocks.empty()) throw input_error("sheet: expected one image or more, found none");
  for (const auto& block : blocks) {
    if (block.maps.empty()) throw input_error("sheet: expected one map or more of each image, found none");
    if (block.image.width < 1 || block.image.width != block.image.height)
      throw input_error("sheet: expected square images, found {} x {}", block.image.width,
                        block.image.height);
  }
  const Layout l = layout_of(blocks);
  int height = kMargin;
  for (const auto& block : blocks) height += height_of(block, l) + kBetweenBlocks;
  const int foot = line_height(kSmall) * (fits_beside_legend(remark, l.width()) ? 1 : 2);
  Image sheet = plain_image(l.width(), height + foot + kMargin);
  int y = kMargin;
  for (const auto& block : blocks) {
    draw_block(sheet, y, block, l, heat);
    y += height_of(block, l) + kBetweenBlocks;
  }
  draw_foot(sheet, y, remark, heat);
  return sheet;
}

}  // namespace aha
