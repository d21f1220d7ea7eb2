#include "aha/image/summary_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "aha/base/error.h"
#include "aha/image/draw.h"
#include "aha/image/resize.h"
#include "aha/image/text.h"

namespace aha {
namespace {

constexpr Color kSummaryInk = {33, 37, 41}, kSummaryGray = {95, 103, 111}, kGrid = {226, 229, 232};
constexpr Color kDeletion = {213, 94, 0}, kInsertion = {0, 114, 178}, kRandom = {150, 157, 164};
constexpr int kEdge = 56, kBetween = 56;            // around everything, between panels
constexpr int kPanel = 520, kMostPhotoWidth = 780;  // panels have one height; a wide photo is less high
constexpr int kDiagramWidth = 600, kAxisRoom = 96;  // kAxisRoom: left of the diagram, for its numbers
constexpr int kLeastColumn = 370;                   // of a panel, for the words below it
constexpr int kBar = 220, kBarThickness = 16;

const TextStyle kHeading{44, kSummaryInk, true}, kHeadingValue{44, kSummaryInk}, kSubtitle{24, kSummaryGray},
    kCaption{22, kSummaryGray}, kTick{20, kSummaryGray}, kAxis{22, kSummaryInk};

struct PanelSize {
  int width, height;
};

// The largest size of this aspect in a panel. Small images grow by a whole number, so that all their pixels
// are equally wide.
PanelSize panel_size(double width, double height, int most_width) {
  const double scale = std::min(most_width / width, kPanel / height);
  const double whole = scale >= 4 ? std::floor(scale) : scale;
  return {std::max(1, static_cast<int>(std::lround(whole * width))),
          std::max(1, static_cast<int>(std::lround(whole * height)))};
}

Image fitted(const Image& image, const PanelSize& to) {
  const bool whole = to.width >= 4 * image.width && to.width % image.width == 0;
  return resized(image, to.width, to.height, whole ? Filter::kNearest : Filter::kBicubic);
}

// Edges of the part along one side, a pixel apart or more.
struct Edges {
  int low, high;
};
Edges whole_pixels(double low, double high, int side) {
  const int first = std::min(static_cast<int>(std::lround(low)), side - 1);
  return {first, std::max(first + 1, static_cast<int>(std::lround(high)))};
}

// The part of the photo; black beyond its border, as the network sees it.
Image part_of(const Image& photo, const Box& part) {
  if (!(part.left < part.right && part.top < part.bottom && part.left < photo.width &&
        part.top < photo.height && part.right > 0 && part.bottom > 0))
    throw input_error("sheet: expected a part of the photo, found {}..{} and {}..{} of {} x {} pixels",
                      part.left, part.right, part.top, part.bottom, photo.width, photo.height);
  const Edges across = whole_pixels(part.left, part.right, photo.width),
              down = whole_pixels(part.top, part.bottom, photo.height);
  Image out = plain_image(across.high - across.low, down.high - down.low, {0, 0, 0});
  paste(out, -across.low, -down.low, photo);
  return out;
}

// The probability up, the share of pixels across.
class Diagram {
 public:
  Diagram(Image& sheet, int x, int y, const SummarySheet& of) : sheet_(sheet), x_(x), y_(y) {
    double highest = 0.05;
    for (const auto* curves : {&of.curves, &of.random})
      if (*curves)
        for (const auto* curve : {&(*curves)->removed_top, &(*curves)->removed_bottom})
          for (const double value : *curve) highest = std::max(highest, value);
    step_ = highest <= 0.1 ? 0.02 : highest <= 0.25 ? 0.05 : highest <= 0.5 ? 0.1 : 0.2;
    highest_ = step_ * std::ceil(highest / step_ - 1e-9);
  }

  void draw_axes() {
    const int below = y_ + kPanel;
    for (int i = 0; i <= 5; ++i) {
      draw_grid({at(0.2 * i, 0), at(0.2 * i, highest_)});
      draw_text(sheet_, static_cast<int>(at(0.2 * i, 0).x), below + 8, fmt::format("{}", 20 * i), kTick,
                Align::kCenter);
    }
    for (int i = 0; i * step_ <= highest_ + 1e-9; ++i) {
      const Point left = at(0, i * step_);
      draw_grid({left, at(1, i * step_)});
      draw_text(sheet_, x_ - 12, static_cast<int>(left.y) - line_height(kTick) / 2,
                fmt::format("{:.{}f}", i * step_, step_ < 0.1 ? 2 : 1), kTick, Align::kRight);
    }
    draw_text(sheet_, x_ - kAxisRoom / 2, y_ - line_height(kAxis) - 14, "probability of the class", kAxis);
    draw_text(sheet_, x_ + kDiagramWidth / 2, below + 10 + line_height(kTick),
              "pixels removed or inserted, most important first (%)", kAxis, Align::kCenter);
  }

  void draw(const SheetCurves& curves, bool random) {
    std::vector<Point> deletion, insertion;
    for (size_t i = 0; i < curves.removed_top.size(); ++i)
      deletion.push_back(at(0.1 * static_cast<double>(i), curves.removed_top[i]));
    for (size_t i = 0; i < curves.removed_bottom.size(); ++i)
      insertion.push_back(at(1 - 0.1 * static_cast<double>(i), curves.removed_bottom[i]));
    draw_curve(deletion, random ? kRandom : kDeletion, random);
    draw_curve(insertion, random ? kRandom : kInsertion, random);
  }

 private:
  Point at(double share, double probability) const {
    return {x_ + share * kDiagramWidth, y_ + kPanel * (1 - probability / highest_)};
  }
  void draw_grid(const Segment& line) { draw_segments(sheet_, {&line, 1}, {2, kGrid}); }
  void draw_curve(const std::vector<Point>& points, const Color& color, bool random) {
    draw_line(sheet_, points, {random ? 3.0 : 5.0, color});
    if (random) return;
    for (const Point& point : points) {
      const Segment dot{point, point};
      draw_segments(sheet_, {&dot, 1}, {12, color});
    }
  }

  Image& sheet_;
  int x_, y_;
  double step_, highest_;
};

// A short line of the curve's color, then the text.
void draw_key(Image& sheet, int x, int y, const Color& color, double width, const std::string& text,
              const TextStyle& style) {
  const int middle = y + line_height(style) / 2;
  const Segment key{{x + 3.0, middle + 0.5}, {x + 33.0, middle + 0.5}};
  draw_segments(sheet, {&key, 1}, {width, color});
  draw_text(sheet, x + 46, y, text, style);
}

// "insertion ↑ 0.370", and the area of a random map beside it.
void draw_score(Image& sheet, int x, int y, const char* name, double area, std::optional<double> random,
                const Color& color) {
  draw_key(sheet, x, y, color, 6, fmt::format("{} {:.3f}", name, area), {kCaption.size, kSummaryInk, true});
  if (random)
    draw_key(sheet, x + kDiagramWidth / 2, y, kRandom, 3, fmt::format("random map {:.3f}", *random),
             kCaption);
}

}  // namespace

Image summary_sheet(const SummarySheet& of, const HeatOptions& heat) {
  if (of.photo.width < 1 || of.photo.height < 1)
    throw input_error("sheet: expected a photo with pixels, found none");
  const Image seen = part_of(of.photo, of.seen);
  const PanelSize photo = panel_size(of.photo.width, of.photo.height, kMostPhotoWidth),
                  map = panel_size(seen.width, seen.height, kMostPhotoWidth);
  const int photo_x = kEdge, photo_room = std::max(photo.width, kLeastColumn),
            map_room = std::max(map.width, kLeastColumn), map_x = photo_x + photo_room + kBetween,
            diagram_x = map_x + map_room + kBetween + kAxisRoom - 40;
  const int right = of.curves ? diagram_x + kDiagramWidth : map_x + map_room;
  const int least = text_width(of.title, kHeading) + 24 + text_width(of.probability, kHeadingValue);
  const int width = std::max(right, std::min(kEdge + least, 1200)) + kEdge;
  const int panels_y = kEdge + line_height(kHeading) + line_height(kSubtitle) + 36;
  const int text_y = panels_y + kPanel + 18;
  const int lines = 10 + line_height(kTick) + line_height(kAxis) + 14 + 2 * line_height(kCaption);
  Image sheet =
      plain_image(width, panels_y + kPanel + (of.curves ? lines : 24 + 2 * line_height(kCaption)) + kEdge);

  const int room = width - 2 * kEdge;
  const int value_width = text_width(of.probability, kHeadingValue);
  const std::string title = shortened(of.title, room - value_width - 24, kHeading);
  draw_text(sheet, kEdge, kEdge, title, kHeading);
  draw_text(sheet, kEdge + text_width(title, kHeading) + 24, kEdge, of.probability, kHeadingValue);
  draw_text(sheet, kEdge, kEdge + line_height(kHeading) + 4, shortened(of.subtitle, room, kSubtitle),
            kSubtitle);

  const double across = static_cast<double>(photo.width) / of.photo.width,
               down = static_cast<double>(photo.height) / of.photo.height;
  const auto beside = [](int side) { return (kPanel - side) / 2; };
  paste(sheet, photo_x, panels_y + beside(photo.height),
        with_marked_part(fitted(of.photo, photo), {of.seen.left * across, of.seen.top * down,
                                                   of.seen.right * across, of.seen.bottom * down}));
  paste(sheet, map_x, panels_y + beside(map.height),
        overlay(fitted(seen, map), of.values, of.width, of.height, heat));

  draw_text(sheet, photo_x, text_y, shortened(of.caption, photo_room, kCaption), kCaption);
  if (seen.width < of.photo.width || seen.height < of.photo.height)
    draw_text(sheet, photo_x, text_y + line_height(kCaption),
              shortened("framed: what the network sees", photo_room, kCaption), kCaption);

  const std::string low = "less", high = "more important";
  const int low_width = text_width(low, kCaption) + 14, high_width = text_width(high, kCaption) + 14;
  const int bar = std::clamp(map_room - low_width - high_width, 60, kBar);
  draw_text(sheet, map_x, text_y, low, kCaption);
  paste(sheet, map_x + low_width, text_y + (line_height(kCaption) - kBarThickness) / 2,
        color_bar(bar, kBarThickness, heat));
  draw_text(sheet, map_x + low_width + bar + 14, text_y, high, kCaption);
  if (heat.contours)
    draw_text(sheet, map_x, text_y + line_height(kCaption), "lines: top 10, 25 and 50 %", kCaption);

  if (of.curves) {
    Diagram diagram(sheet, diagram_x, panels_y, of);
    diagram.draw_axes();
    if (of.random) diagram.draw(*of.random, true);
    diagram.draw(*of.curves, false);
    const auto of_random = [&](double SheetCurves::*area) {
      return of.random ? std::optional((*of.random).*area) : std::nullopt;
    };
    const int y = panels_y + kPanel + 10 + line_height(kTick) + line_height(kAxis) + 14;
    draw_score(sheet, diagram_x, y, "insertion ↑", of.curves->insertion, of_random(&SheetCurves::insertion),
               kInsertion);
    draw_score(sheet, diagram_x, y + line_height(kCaption), "deletion ↓", of.curves->deletion,
               of_random(&SheetCurves::deletion), kDeletion);
  }
  return sheet;
}

}  // namespace aha
