#include "aha/app/compare.h"

#include <algorithm>
#include <filesystem>

#include "aha/app/explain.h"
#include "aha/app/file_stems.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/image/heatmap.h"
#include "aha/image/png.h"
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

Image sheet_of(const Compared& c, const Image& image) {
  // At most eight in a row, and rows of nearly the same length.
  const int tiles = static_cast<int>(c.methods.size()) + 1, rows = (tiles + 7) / 8,
            columns = (tiles + rows - 1) / rows;
  Image sheet(kMargin + columns * (kTile + kMargin),
              kMargin + rows * (kTile + kMargin + kLines * (kCellHeight + 2)));
  std::fill(sheet.rgb.begin(), sheet.rgb.end(), uint8_t{255});
  place(sheet, 0, 0, image,
        {c.chosen.name.empty() ? fmt::format("class {}", c.chosen.index) : c.chosen.name,
         fmt::format("{:.1f} %", 100 * c.chosen.probability)});
  for (int i = 1; i < tiles; ++i) {
    const auto& [method, m] = c.methods[static_cast<size_t>(i) - 1];
    const std::span<const float> values(m.map.data_ptr<float>(), static_cast<size_t>(m.map.numel()));
    place(
        sheet, i % columns, i / columns,
        overlay(image, values, static_cast<int>(m.map.size(1)), static_cast<int>(m.map.size(0))),
        {method, fmt::format("ins {:.3f}  del {:.3f}", m.score->insertion, m.score->deletion),
         fmt::format("ins-del {:.3f}  {:.0f} ms", m.score->insertion - m.score->deletion, 1000 * m.seconds)});
  }
  return sheet;
}

Compared compared(const MethodContext& by, const std::string& image, const CompareOptions& options,
                  const std::vector<std::unique_ptr<Method>>& methods, const Context& context) {
  const auto& info = by.target.info();
  const auto pixels =
      input_from_image(read_image(image), info.input).unsqueeze(0).to(torch_device(context));  // (1, 3, H, W)
  Compared out;
  out.image = image;
  out.chosen = chosen_class(options.wanted, probabilities(by.target, pixels, context)[0], info);
  const ReferenceOptions reference = with_mean_color({}, info.mean_color);
  out.references = json_from_references(reference);
  const auto references = all_references(pixels, reference);
  const auto classes = torch::full({1}, out.chosen.index, torch::kInt64);
  const auto labels = method_labels(options.methods);
  for (size_t m = 0; m < methods.size(); ++m) {
    context.cancel->check();
    out.methods.push_back({labels[m], scored_maps(*methods[m], labels[m], by.target, pixels, classes, {image},
                                                  references, context)[0]});
  }
  out.sheet = sheet_of(out, image_from_tensor(pixels[0].cpu()));
  return out;
}

}  // namespace

Fields fields(CompareOptions& o) {
  return Fields()
      .add("methods", o.methods,
           "methods, NAME:key=value:key=value each (`aha models` and docs/methods.md have them all)")
      .add("class", o.wanted, "the class that is explained: predicted, an index or a name")
      .add("out", o.out, "folder of STEM.compare.png");
}

void compare(const MethodContext& by, const std::vector<std::string>& images, const CompareOptions& options,
             const std::function<void(const Compared&)>& each, const Context& context) {
  if (options.methods.empty()) throw input_error("--methods: expected one method or more, found none");
  std::vector<std::unique_ptr<Method>> methods;
  for (const auto& spec : options.methods) methods.push_back(make_method(spec, by));
  if (options.wanted != "predicted")
    class_from_text(options.wanted, by.target.info());  // refused before any work
  if (!options.out.empty()) make_directories(options.out);
  const auto stems = file_stems(images);
  for (size_t i = 0; i < images.size(); ++i) {
    Compared one = compared(by, images[i], options, methods, context);
    if (!options.out.empty()) {
      one.file = (std::filesystem::path(options.out) / (stems[i] + ".compare.png")).string();
      write_png(one.file, one.sheet);
    }
    each(one);
  }
}

nlohmann::ordered_json json_from(const Compared& c) {
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (const auto& [method, scored] : c.methods) {
    nlohmann::ordered_json one = {{"method", method}};
    add_to_json(one, scored);
    methods.push_back(std::move(one));
  }
  return {{"image", c.image},
          {"class", json_from(c.chosen)},
          {"methods", methods},
          {"references", c.references},
          {"file", c.file}};
}

}  // namespace aha
