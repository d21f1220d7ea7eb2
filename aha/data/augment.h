// Training pictures varied: shifted, mirrored, and partly removed.
//
//   shift    a random crop of the picture after reflecting `pad` pixels around it
//   flip     left and right exchanged in half of the pictures
//   mask     in a share of the pictures a random grid of G x G regions, G in 2..8, keeps each region with a
//   probability drawn from [0.3, 1]; what is removed shows
//            black, the mean colour or a blurred copy. A classifier that never saw holes answers at random
//            when an attribution is tested by removal; one that did stays sane.
//
// What happens to a picture is a pure function of (seed, epoch, index): threads, workers and resuming change
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
  double mask_share = 0.5;                                // share of pictures with removed regions
  std::array<double, 3> mean = {0.4914, 0.4822, 0.4465};  // colour of mean removal, RGB in [0, 1]
};
Fields fields(AugmentOptions& options);

// Writes height * width * 3 floats in [0, 1], interleaved: one example of a channels-last batch.
void augment(const Image& image, const AugmentOptions& options, uint64_t seed, int64_t epoch, int64_t index,
             std::span<float> out);

// The same layout without any change.
void unchanged(const Image& image, std::span<float> out);

}  // namespace aha
