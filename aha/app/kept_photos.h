// Photos as they were read, kept from decoding until their results are drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "aha/image/resize.h"
#include "aha/networks/seen_part.h"

namespace aha {

struct KeptPhoto {
  Image image;          // as large as it was, or smaller
  Box seen;             // what the network sees, in pixels of `image`
  Box seen_originally;  // the same in pixels of the photo
};

// Safe from several threads.
class KeptPhotos {
 public:
  // The longer side is at most `longest`; 0 = as it is.
  KeptPhotos(const InputSpec& spec, int longest) : spec_(spec), longest_(longest) {}

  // Returns the image.
  Image keep(int64_t index, Image image) {
    KeptPhoto kept;
    kept.seen = kept.seen_originally = seen_part(image.width, image.height, spec_);
    if (const int side = std::max(image.width, image.height); longest_ > 0 && side > longest_) {
      const double scale = static_cast<double>(longest_) / side;
      const auto scaled = [&](int pixels) {
        return std::max(1, static_cast<int>(std::lround(scale * pixels)));
      };
      kept.image = resized(image, scaled(image.width), scaled(image.height), Filter::kBicubic);
      const double across = static_cast<double>(kept.image.width) / image.width,
                   down = static_cast<double>(kept.image.height) / image.height;
      kept.seen = {kept.seen.left * across, kept.seen.top * down, kept.seen.right * across,
                   kept.seen.bottom * down};
    } else {
      kept.image = image;
    }
    const std::lock_guard lock(mutex_);
    kept_.insert_or_assign(index, std::move(kept));
    return image;
  }

  // Of an image that turned out to be none.
  void drop(int64_t index) {
    const std::lock_guard lock(mutex_);
    kept_.erase(index);
  }

  KeptPhoto take(int64_t index) {
    const std::lock_guard lock(mutex_);
    auto node = kept_.extract(index);
    return std::move(node.mapped());
  }

 private:
  const InputSpec spec_;
  const int longest_;
  std::mutex mutex_;
  std::map<int64_t, KeptPhoto> kept_;
};

}  // namespace aha
