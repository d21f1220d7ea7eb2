#include "aha/app/compare.h"

#include <algorithm>
#include <chrono>

#include "aha/app/explain.h"
#include "aha/base/error.h"
#include "aha/image/heatmap.h"
#include "aha/image/read.h"
#include "aha/image/text.h"
#include "aha/methods/catalog.h"
#include "aha/perturb/reference.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

constexpr int kTile = 224, kMargin = 8, kLines = 3;

// `tile` into `sheet` with its labels below.
void place(Image& sheet, int column, int row, const Image& tile, const std::vector<std::string>& labels) {
  const int x = kMargin + column * (kTile + kMargin),
            y = kMargin + row * (kTile + kMargin + kLines * (kCellHeight + 2));
  const Image fitted = resized(tile, kTile, kTile, Filter::kBilinear);
  for (int line = 0; line < kTile; ++line)
    std::copy_n(fitted.row(line), kTile * 3, sheet.row(y + line) + x * 3);
  for (size_t i = 0; i < labels.size(); ++i)
    draw_text(sheet, x, y + kTile + 3 + static_cast<int>(i) * (kCellHeight + 2),
              labels[i].substr(0, kTile / kCellWidth), {1, {30, 30, 30}});
}

Image sheet_of(const Compared& c, const Image& picture) {
  // At most eight in a row, and rows of nearly the same length.
  const int tiles = static_cast<int>(c.methods.size()) + 1, rows = (tiles + 7) / 8,
            columns = (tiles + rows - 1) / rows;
  Image sheet(kMargin + columns * (kTile + kMargin),
              kMargin + rows * (kTile + kMargin + kLines * (kCellHeight + 2)));
  std::fill(sheet.rgb.begin(), sheet.rgb.end(), uint8_t{255});
  place(sheet, 0, 0, picture,
        {c.class_name.empty() ? fmt::format("class {}", c.class_index) : c.class_name,
         fmt::format("{:.1f} %", 100 * c.probability)});
  for (int i = 1; i < tiles; ++i) {
    const auto& m = c.methods[static_cast<size_t>(i) - 1];
    place(sheet, i % columns, i / columns, overlay(picture, m.map, c.size, c.size),
          {m.method, fmt::format("ins {:.3f}  del {:.3f}", m.insertion, m.deletion),
           fmt::format("ins-del {:.3f}  {:.0f} ms", m.insertion - m.deletion, 1000 * m.seconds)});
  }
  return sheet;
}

}  // namespace

Compared compare(const MethodContext& by, const std::string& picture, const std::vector<std::string>& methods,
                 const std::string& wanted, const Context& context) {
  const auto& info = by.target.info();
  const auto pixels = input_from_image(read_image(picture), info.input)
                          .unsqueeze(0)
                          .to(torch_device(context));               // (1, 3, H, W)
  const auto probs = probabilities(by.target, pixels, context)[0];  // (C)
  Compared out;
  out.image = picture;
  out.size = info.input.size;
  out.class_index = wanted == "predicted" ? static_cast<int>(probs.argmax().item<int64_t>()) : class_from_text(wanted, info);
  if (out.class_index < static_cast<int>(info.class_names.size()))
    out.class_name = info.class_names[out.class_index];
  out.probability = probs[out.class_index].item<double>();

  const auto references = all_references(pixels, with_mean_color({}, info.mean_color));
  const auto classes =
      torch::full({1}, out.class_index, torch::TensorOptions(torch::kInt64).device(pixels.device()));
  const std::vector<uint64_t> streams = {picture_stream(picture)};
  for (const auto& spec : methods) {
    context.cancel->check();
    const auto method = make_method(spec, by);
    const auto start = std::chrono::steady_clock::now();
    const auto maps = method->maps(pixels, classes, streams, context).cpu().contiguous();  // (1, H, W)
    ComparedMethod one;
    one.method = spec;
    one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!maps.isfinite().all().item<bool>())
      throw work_error("{}: the map of {} is not finite", picture, spec);
    const auto score = score_maps(by.target, pixels, maps, classes, references, context)[0];
    one.deletion = score.deletion;
    one.insertion = score.insertion;
    one.map.assign(maps.data_ptr<float>(), maps.data_ptr<float>() + maps.numel());
    out.methods.push_back(std::move(one));
  }
  out.sheet = sheet_of(out, image_from_tensor(pixels[0].cpu()));
  return out;
}

}  // namespace aha
