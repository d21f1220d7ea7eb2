#include "aha/experiments/disc_images.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/rng.h"
#include "aha/data/dataset.h"
#include "aha/image/draw.h"
#include "aha/image/png.h"

namespace aha {

int64_t write_disc_images(const DiscStep& step, const std::string& folder, const Context& context) {
  const auto data = slice(open_dataset(step.data), {.skip = step.skip, .limit = step.images});
  make_directories(folder + "/images");
  make_directories(folder + "/masks");
  std::string list = "path,label,mask\n";
  int64_t kept = 0;
  for (int64_t i = 0; i < data->size(); ++i) {
    context.cancel->check();
    const bool own = data->label(i) == step.label;
    if ((step.keep == "class" && !own) || (step.keep == "others" && own)) continue;
    Image image = data->image(i), mask = plain_image(image.width, image.height, {0, 0, 0});
    if (own || step.keep == "others") {
      Rng rng(context.seed, stream_id({0xd15c, static_cast<uint64_t>(step.skip + i)}));
      const double r = step.radius * std::min(image.width, image.height);
      const double cx = r + rng.uniform() * (image.width - 2 * r),
                   cy = r + rng.uniform() * (image.height - 2 * r);
      for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x) {
          const double dx = x + 0.5 - cx, dy = y + 0.5 - cy;
          if (dx * dx + dy * dy > r * r) continue;
          std::fill_n(image.row(y) + 3 * x, 3, uint8_t{255});
          std::fill_n(mask.row(y) + 3 * x, 3, uint8_t{255});
        }
    }
    const std::string name = fmt::format("{:06}.png", step.skip + i);
    write_png(folder + "/images/" + name, image);
    write_png(folder + "/masks/" + name, mask);
    list += fmt::format("images/{0},{1},masks/{0}\n", name, data->label(i));
    ++kept;
  }
  if (kept == 0)
    throw input_error("{}: expected images of class {} among {}, found none", step.data, step.label,
                      data->size());
  write_file_atomically(folder + "/list.csv", list);
  return kept;
}

}  // namespace aha
