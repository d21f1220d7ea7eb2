#include "aha/image/text.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_OUTLINE_H

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>

#include "aha/image/font_data.h"

namespace aha {
namespace {

constexpr size_t kMostCharacters = 4096;
constexpr char32_t kReplacement = 0xFFFD;
constexpr std::string_view kEllipsis = "…";

// Positions are in 64ths of a pixel, as FreeType has them.
int64_t floor_px(int64_t position) {
  return position >> 6;
}
int64_t ceil_px(int64_t position) {
  return (position + 63) >> 6;
}

// The first character of `rest`, which loses it.
char32_t next_character(std::string_view& rest) {
  constexpr char32_t kLeast[] = {0, 0x80, 0x800, 0x10000};  // with so many bytes more; fewer would do below
  const auto lead = static_cast<uint8_t>(rest[0]);
  const int more = lead < 0x80            ? 0
                   : lead >> 5 == 0b110   ? 1
                   : lead >> 4 == 0b1110  ? 2
                   : lead >> 3 == 0b11110 ? 3
                                          : -1;
  char32_t character = more <= 0 ? lead : lead & (0x3F >> more);
  size_t used = 1;
  bool good = more >= 0;
  for (int i = 0; i < more && good; ++i) {
    good = used < rest.size() && (static_cast<uint8_t>(rest[used]) & 0xC0) == 0x80;
    if (good) character = character << 6 | (static_cast<uint8_t>(rest[used++]) & 0x3F);
  }
  rest.remove_prefix(used);
  const bool control = character < 0x20 || (character >= 0x7F && character < 0xA0),
             surrogate = character >= 0xD800 && character < 0xE000;
  return !good || control || surrogate || character > 0x10FFFF || character < kLeast[more] ? kReplacement
                                                                                           : character;
}

// FreeType's faces keep the size they were last asked for: one thread at a time.
class Fonts {
 public:
  Fonts() {
    if (FT_Init_FreeType(&library_) != 0) throw std::runtime_error("FreeType does not start");
    for (const bool bold : {false, true}) {
      const auto file = font_file(bold);
      if (FT_New_Memory_Face(library_, file.data(), static_cast<FT_Long>(file.size()), 0, &faces_[bold]) != 0)
        throw std::runtime_error("FreeType does not read the font of this build");
    }
  }

  FT_Face at_size_of(const TextStyle& style) {
    FT_Face face = faces_[style.bold];
    const double size = style.size >= 4 ? std::min(style.size, 512.0) : 4;  // NaN too
    FT_Set_Char_Size(face, 0, std::lround(size * 64), 72, 72);  // 72 dots per inch: a point is a pixel
    return face;
  }

  std::mutex mutex;

 private:
  FT_Library library_ = nullptr;
  FT_Face faces_[2] = {};
};

Fonts& fonts() {
  static Fonts* all = new Fonts;  // lives as long as the process
  return *all;
}

constexpr FT_Int32 kLoad =
    FT_LOAD_TARGET_LIGHT | FT_LOAD_NO_BITMAP;  // fits heights to pixels, leaves widths alone

struct PlacedGlyph {
  FT_UInt index;
  int64_t x;  // of its origin, from the left edge of the box
};
struct Line {
  std::vector<PlacedGlyph> glyphs;
  int64_t width = 0, ascent = 0, height = 0;  // pixels
};

// Ink may begin before a glyph's origin and end behind its advance: the box holds both.
Line line_of(FT_Face face, std::string_view text) {
  Line line;
  line.ascent = ceil_px(face->size->metrics.ascender);
  line.height = line.ascent + ceil_px(-face->size->metrics.descender);
  int64_t pen = 0, left = 0, right = 0;
  FT_UInt before = 0;
  while (!text.empty() && line.glyphs.size() < kMostCharacters) {
    const FT_UInt index = FT_Get_Char_Index(face, next_character(text));
    if (FT_Load_Glyph(face, index, kLoad) != 0) continue;
    FT_Vector kerning = {};
    if (before != 0) FT_Get_Kerning(face, before, index, FT_KERNING_UNFITTED, &kerning);
    pen += kerning.x;
    FT_BBox ink = {};
    FT_Outline_Get_CBox(&face->glyph->outline, &ink);
    left = std::min<int64_t>(left, pen + ink.xMin);
    line.glyphs.push_back({index, pen});
    right = std::max<int64_t>(right, pen + ink.xMax);
    pen += face->glyph->linearHoriAdvance >> 10;  // 16.16 pixels
    right = std::max(right, pen);
    before = index;
  }
  for (auto& glyph : line.glyphs) glyph.x -= left;
  line.width = ceil_px(right - left);
  return line;
}

// Coverage over the image; rows outside first..last-1 are left out.
void blend(Image& image, const FT_Bitmap& ink, int64_t x, int64_t y, int64_t first, int64_t last,
           const Color& color) {
  for (int64_t j = std::max<int64_t>({y, first, 0});
       j < std::min<int64_t>({y + ink.rows, last, image.height}); ++j)
    for (int64_t i = std::max<int64_t>(x, 0); i < std::min<int64_t>(x + ink.width, image.width); ++i) {
      const int cover = ink.buffer[(j - y) * ink.pitch + (i - x)];
      uint8_t* pixel = image.row(static_cast<int>(j)) + i * 3;
      for (int c = 0; c < 3; ++c)
        pixel[c] = static_cast<uint8_t>((pixel[c] * (255 - cover) + color[c] * cover + 127) / 255);
    }
}

}  // namespace

int text_width(std::string_view text, const TextStyle& style) {
  const std::lock_guard lock(fonts().mutex);
  return static_cast<int>(line_of(fonts().at_size_of(style), text).width);
}

int line_height(const TextStyle& style) {
  const std::lock_guard lock(fonts().mutex);
  return static_cast<int>(line_of(fonts().at_size_of(style), "").height);
}

void draw_text(Image& image, int x, int y, std::string_view text, const TextStyle& style, Align align) {
  const std::lock_guard lock(fonts().mutex);
  FT_Face face = fonts().at_size_of(style);
  const Line line = line_of(face, text);
  const int64_t left = x - (align == Align::kLeft ? 0 : align == Align::kRight ? line.width : line.width / 2);
  for (const auto& [index, at] : line.glyphs) {
    if (left + floor_px(at) > image.width) break;
    if (FT_Load_Glyph(face, index, kLoad) != 0) continue;
    FT_GlyphSlot slot = face->glyph;
    FT_Outline_Translate(&slot->outline, at & 63, 0);  // between two pixels
    if (FT_Render_Glyph(slot, FT_RENDER_MODE_LIGHT) != 0) continue;
    blend(image, slot->bitmap, left + floor_px(at) + slot->bitmap_left,
          int64_t{y} + line.ascent - slot->bitmap_top, y, int64_t{y} + line.height, style.color);
  }
}

std::string shortened(std::string_view text, int width, const TextStyle& style) {
  if (text_width(text, style) <= width) return std::string(text);
  std::vector<size_t> starts;  // of the characters, and where the last one ends
  std::string_view rest = text;
  for (; !rest.empty() && starts.size() < kMostCharacters; next_character(rest))
    starts.push_back(text.size() - rest.size());
  text.remove_suffix(rest.size());
  const size_t characters = starts.size();
  starts.push_back(text.size());
  const auto keeping = [&](size_t count) {  // characters, the first half of them from the beginning
    const size_t front = (count + 1) / 2, back = count / 2;
    return std::string(text.substr(0, starts[front])) + std::string(kEllipsis) +
           std::string(text.substr(starts[characters - back]));
  };
  size_t fits = 0, too_many = characters;
  while (fits + 1 < too_many) {
    const size_t middle = (fits + too_many) / 2;
    (text_width(keeping(middle), style) <= width ? fits : too_many) = middle;
  }
  return keeping(fits);
}

}  // namespace aha
