#include "aha/app/compare.h"

#include <algorithm>
#include <filesystem>

#include "aha/app/explain.h"
#include "aha/app/explanation_sheet.h"
#include "aha/app/file_stems.h"
#include "aha/app/input_batches.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/timer.h"
#include "aha/image/png.h"
#include "aha/image/png_origin.h"
#include "aha/image/read.h"
#include "aha/image/sheet.h"
#include "aha/methods/catalog.h"
#include "aha/methods/fitting.h"
#include "aha/perturb/reference.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

constexpr const char* kSheetRemark =
    "Ins-Del: higher is better, the best is framed.   F, B: forward and backward passes of the classifier.";

// What is drawn of an image; the maps are the caller's.
struct Drawn {
  Compared compared;
  Image image;
};

double ins_del(const ComparedMethod& m) {
  return m.scored.score->insertion - m.scored.score->deletion;
}

void write_sheet(const std::string& file, const Image& sheet) {
  const bool replaces = std::filesystem::exists(file);
  write_png(file, sheet);
  if (replaces) spdlog::info("{}: overwritten", file);
}

SheetBlock block_of(const Drawn& drawn, const ClassifierInfo& target) {
  const Compared& c = drawn.compared;
  SheetBlock block;
  block.image = drawn.image;
  block.title = short_name(c.chosen);
  block.lines = {fmt::format("{:.1f} %", 100 * c.chosen.probability), short_name(target),
                 std::filesystem::path(c.image).filename().string()};
  const auto best = std::max_element(c.methods.begin(), c.methods.end(),
                                     [](const auto& a, const auto& b) { return ins_del(a) < ins_del(b); });
  for (auto m = c.methods.begin(); m != c.methods.end(); ++m) {
    const Tensor& map = m->scored.map;
    const size_t colon = std::min(m->method.find(':'), m->method.size());
    SheetMap one;
    one.values = {map.data_ptr<float>(), static_cast<size_t>(map.numel())};
    one.width = static_cast<int>(map.size(1));
    one.height = static_cast<int>(map.size(0));
    one.name = m->method.substr(0, colon);
    if (colon < m->method.size()) one.options = m->method.substr(colon + 1);
    std::replace(one.options.begin(), one.options.end(), ':', ' ');
    one.score = fmt::format("Ins-Del {}{:.3f}", ins_del(*m) < 0 ? "−" : "", std::abs(ins_del(*m)));
    const Passes& passes = m->scored.made.passes;
    const bool none = passes.forwards == 0 && passes.backwards == 0;
    one.cost = fmt::format("{}  ·  {}", none ? "no pass" : text_from_passes(passes),
                           text_from_seconds(m->scored.seconds));
    one.best = c.methods.size() > 1 && m == best;
    block.maps.push_back(std::move(one));
  }
  return block;
}

// A short map is made once more: the first one also waits for the libraries to start.
double seconds_of_another(Method& method, const Tensor& pixels, const Tensor& classes,
                          const Context& context) {
  const Timer timer;
  method.attribute(pixels, classes.to(pixels.device()), image_streams(pixels), context);
  return timer.seconds();
}

Drawn compared(const MethodContext& by, const std::string& image, const std::vector<std::string>& specs,
               const std::string& wanted, const std::vector<std::unique_ptr<Method>>& methods, Scorer& scorer,
               const Context& context) {
  const auto pixels = input_from_image(read_image(image), by.target.info().input)
                          .unsqueeze(0)
                          .to(torch_device(context));  // (1, 3, H, W)
  return {compare_pixels(by, pixels, image, specs, wanted, methods, context, &scorer),
          image_from_tensor(pixels[0].cpu())};
}

}  // namespace

Fields fields(CompareOptions& o) {
  return Fields()
      .add("methods", o.methods,
           "methods, NAME:key=value:key=value each (`aha models` and docs/methods.md have them); all = all "
           "that fit the target, slow ones too; default: aha where there is an explainer, cheap strong ones "
           "of "
           "this kind of network, rise:masks=100 and a control")
      .add("class", o.wanted, "the class that is explained: predicted, an index or a name")
      .add("out", o.out, "folder of STEM.compare.png")
      .add("together", o.together, "one sheet OUT/compare.png with a block for each image")
      .add("contours", o.heat.contours, "lines around the top 10, 25 and 50 % of the pixels")
      .add("strict", o.strict, "stop at the first image that fails instead of leaving it out")
      .add("overwrite", o.overwrite, "replace images in --out that aha did not make")
      .nest("heat-", fields(o.heat));
}

Compared compare_pixels(const MethodContext& by, const Tensor& pixels, const std::string& image,
                        const std::vector<std::string>& specs, const std::string& wanted,
                        const std::vector<std::unique_ptr<Method>>& methods, const Context& context,
                        Scorer* scorer) {
  constexpr double kShort = 0.5;  // seconds
  const auto& info = by.target.info();
  Compared c;
  c.image = image;
  c.chosen = chosen_class(wanted, probabilities(by.target, pixels, context)[0], info);
  const ReferenceOptions reference = with_mean_color({}, info.mean_color);
  c.references = json_from_references(reference);
  const auto classes = torch::full({1}, c.chosen.index, torch::kInt64);
  const auto labels = method_labels(specs);
  std::vector<std::vector<ScoredMap>> maps;  // of each method, the one of this image
  auto progress = context.progress("compare", static_cast<int64_t>(methods.size()));
  for (size_t m = 0; m < methods.size(); ++m) {
    context.cancel->check();
    maps.push_back(made_maps(*methods[m], labels[m], pixels, classes, {image}, context));
    double& seconds = maps.back()[0].seconds;
    if (seconds < kShort && !methods[m]->timed())
      seconds = std::min(seconds, seconds_of_another(*methods[m], pixels, classes, context));
    progress.advance(1, labels[m]);
  }
  std::vector<std::vector<ScoredMap>*> all;
  for (auto& one : maps) all.push_back(&one);
  std::optional<Scorer> own;
  if (!scorer) scorer = &own.emplace(by.target, context);
  scorer->score(all, pixels, classes, all_references(pixels, reference));
  c.score_precision = scorer->precision();
  for (size_t m = 0; m < methods.size(); ++m) c.methods.push_back({labels[m], std::move(maps[m][0])});
  return c;
}

void compare(const MethodContext& by, const std::vector<std::string>& images, const CompareOptions& options,
             const std::function<void(const Compared&)>& each, const Context& context) {
  if (options.together && images.size() > kMostTogether)
    throw input_error("--together: expected at most {} images, found {}", kMostTogether, images.size());
  const auto specs = chosen_methods(options.methods, by);
  std::vector<std::unique_ptr<Method>> methods;
  for (const auto& spec : specs) methods.push_back(make_method(spec, by));
  const auto& info = by.target.info();
  if (options.wanted != "predicted") class_from_text(options.wanted, info);  // refused before any work
  const bool writes = !options.out.empty();
  const auto stems = file_stems(images);
  const auto path_of = [&](size_t i) {
    return (std::filesystem::path(options.out) /
            (options.together ? "compare.png" : stems[i] + ".compare.png"))
        .string();
  };
  for (size_t i = 0; i < images.size() && writes && !options.overwrite; ++i)
    if (std::filesystem::exists(path_of(i)) && !is_png_of_aha(path_of(i)))
      throw input_error("{}: exists and was not made by aha; --overwrite replaces it",
                        printable(path_of(i), 300));
  if (writes) make_directories(options.out);
  Scorer scorer(by.target, context);
  std::vector<Drawn> all;  // of one sheet
  for (size_t i = 0; i < images.size(); ++i) {
    Drawn one;
    try {
      one = compared(by, images[i], specs, options.wanted, methods, scorer, context);
    } catch (const Error& error) {
      if (options.strict || images.size() == 1 || error.kind() == ErrorKind::kCanceled) throw;
      tell_failure(images[i], error.what());
      one.compared.image = images[i];
      one.compared.error = error.what();
      each(one.compared);
      continue;
    }
    if (writes) one.compared.file = path_of(i);
    if (writes && !options.together)
      write_sheet(one.compared.file, sheet_of({block_of(one, info)}, kSheetRemark, options.heat));
    each(one.compared);
    if (writes && options.together) all.push_back(std::move(one));
  }
  if (all.empty()) return;
  std::vector<SheetBlock> blocks;
  for (const auto& one : all) blocks.push_back(block_of(one, info));
  write_sheet(all[0].compared.file, sheet_of(blocks, kSheetRemark, options.heat));
}

nlohmann::ordered_json json_from(const Compared& c) {
  if (!c.error.empty()) return {{"image", c.image}, {"error", c.error}};
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (const auto& [method, scored] : c.methods) {
    nlohmann::ordered_json one = {{"method", method}};
    add_to_json(one, scored);
    methods.push_back(std::move(one));
  }
  return {{"image", c.image},           {"class", json_from(c.chosen)},         {"methods", methods},
          {"references", c.references}, {"score_precision", c.score_precision}, {"file", c.file}};
}

}  // namespace aha
