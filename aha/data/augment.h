// Training images varied: shifted, mirrored, partly removed, partly replaced by another.
//
//   shift    a random crop of the image after reflecting `pad` pixels around it
//   flip     left and right exchanged in half of the images
//   mask     in a share of the images a random grid of G x G regions, G in 2..8, keeps each region with a
//   probability drawn from [0.3, 1]; what is removed shows
//            black, the mean color or a blurred copy. A classifier that never saw holes answers at random
//            when an attribution is tested by removal; one that did stays sane.
//
//   cutmix   a share of the images shows a rectangle of another one; its label counts by its area (Yun et
//   al., "CutMix", 2019)
//
// What happens to an image is a pure function of (seed, epoch, index): threads, workers and resuming change
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "aha/base/options.h"
#include "aha/image/image.h"

namespace aha {

struct AugmentOptions {
  int pad = 4;  // largest shift in pixels; 0 = none
  bool flip = true;
  double mask_share = 0.5;                                // share of images with removed regions
  double cutmix_share = 0;                                // share of images with a rectangle of another one
  std::array<double, 3> mean = {0.4914, 0.4822, 0.4465};  // color of mean removal, RGB in [0, 1]
};
Fields fields(AugmentOptions& options);

// Writes height * width * 3 floats in [0, 1], interleaved: one example of a channels-last batch.
void augment(const Image& image, const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index,
             std::span<float> out);

// A rectangle of another image: its corner and size in pixels; empty = the image stays whole.
struct CutMix {
  int64_t partner = 0;  // in 0..count-1
  int x = 0, y = 0, width = 0, height = 0;
};
// For an image of side x side among `count`. The area is uniform in (0, 1) before the rectangle is cut at the
// border.
CutMix draw_cutmix(const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index, int64_t count,
                   int side);

// The same layout without any change.
void unchanged(const Image& image, std::span<float> out);

}  // namespace aha
