#include "aha/app/explain.h"

#include "aha/tensor/torch.h"

#include <charconv>
#include <filesystem>
#include <future>

#include "aha/app/explanation_sheet.h"
#include "aha/app/file_stems.h"
#include "aha/app/input_batches.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/npy.h"
#include "aha/base/time_spent.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/methods/catalog.h"
#include "aha/perturb/reference.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kBatch = 8;

// --refine and --budget are options of method aha.
nlohmann::json method_options(const ExplainOptions& options) {
  nlohmann::json out = nlohmann::json::object();
  if (options.refine > 0) out["T"] = options.refine;
  if (!options.budget.empty()) out["budget"] = milliseconds_from_text(options.budget);
  if (!out.empty() && options.method.substr(0, options.method.find(':')) != "aha")
    throw input_error("--refine and --budget: expected method aha, found {}", options.method);
  return out;
}

void write_files(Explanation& e, const Tensor& pixels, const KeptPhoto& photo, const std::string& stem,
                 const ClassifierInfo& target, const ExplainOptions& options) {
  const Tensor& map = e.scored.map;
  const std::span<const float> values(map.data_ptr<float>(), static_cast<size_t>(map.numel()));
  const auto H = static_cast<int>(map.size(0)), W = static_cast<int>(map.size(1));
  const std::string base = (fs::path(options.out) / stem).string();
  e.map_file = base + ".map.npy";
  e.heat_file = base + ".heat.png";
  e.overlay_file = base + ".overlay.png";
  e.json_file = base + ".json";
  if (options.sheet) e.sheet_file = base + ".sheet.png";
  const bool replaces = fs::exists(e.map_file);
  const Image& image = photo.image;
  const Box& part = photo.seen;
  const bool original = options.size == "original";
  const std::function<void()> files[] = {
      [&] {
        write_npy(e.map_file, {H, W}, values);
      },
      [&] {
        write_png(e.heat_file, original
                                   ? heat_image(values, W, H, image.width, image.height, part, options.heat)
                                   : heat_image(values, W, H, options.heat));
      },
      [&] {
        write_png(e.overlay_file, original ? overlay(image, values, W, H, part, options.heat)
                                           : overlay(image_from_tensor(pixels), values, W, H, options.heat));
      },
      [&] {
        if (options.sheet) write_png(e.sheet_file, sheet_of_explanation(e, photo, target, options.heat));
      }};
  // They wait for the disk more than for the CPU, and it is asked by all at once.
  std::vector<std::future<void>> written;
  for (const auto& file : files) written.push_back(std::async(std::launch::async, file));
  for (auto& one : written) one.get();
  write_file_atomically(e.json_file,
                        json_from(e).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (replaces) spdlog::info("{}.*: overwritten", base);
}

}  // namespace

std::unique_ptr<Method> method_of(const ExplainOptions& options, const MethodContext& explained_by) {
  return make_method(options.method, explained_by, method_options(options));
}

std::vector<Explanation> explain_pixels(const MethodContext& by, Method& method, const Tensor& pixels,
                                        const std::vector<std::string>& images, const ExplainOptions& options,
                                        const Context& context, Scorer* scorer) {
  std::optional<Scorer> own;
  if (options.score && !scorer) scorer = &own.emplace(by.target, context);
  const auto& info = by.target.info();
  const Tensor probs = [&] {  // (B, C)
    const TimeSpent time("class");
    return probabilities(by.target, pixels, context);
  }();
  std::vector<Explanation> out;
  std::vector<int64_t> indices;
  for (size_t b = 0; b < images.size(); ++b) {
    Explanation& one = out.emplace_back();
    one.image = images[b];
    const std::string wanted =
        options.classes.empty() ? options.wanted : std::to_string(options.classes.at(b));
    one.chosen = chosen_class(wanted, probs[static_cast<int64_t>(b)], info);
    one.method = options.method;
    indices.push_back(out.back().chosen.index);
  }
  const Tensor classes = torch::tensor(indices, torch::kInt64);  // (B)
  auto maps = [&] {
    const TimeSpent time("map");
    return made_maps(method, options.method, pixels, classes, images, context);
  }();
  std::vector<ScoredMap> random;
  if (scorer) {
    const TimeSpent time("score");
    const ReferenceOptions reference = with_mean_color({}, info.mean_color);
    random = made_maps(*make_method("random", by), "random", pixels, classes, images, context);
    std::vector<ScoredMap>* const both[] = {&maps, &random};
    scorer->score(both, pixels, classes, all_references(pixels, reference));
    for (auto& one : out) one.references = json_from_references(reference);
    for (auto& one : out) one.score_precision = scorer->precision();
  }
  for (size_t b = 0; b < images.size(); ++b) {
    out[b].scored = std::move(maps[b]);
    if (scorer) out[b].random = random[b].score;
  }
  return out;
}

namespace {

// The same, each image alone where one of them fails.
std::vector<Explanation> explained_or_failed(const MethodContext& by, Method& method, const Tensor& pixels,
                                             const std::vector<std::string>& images,
                                             const ExplainOptions& options, const Context& context,
                                             Scorer* scorer) {
  try {
    return explain_pixels(by, method, pixels, images, options, context, scorer);
  } catch (const Error& error) {
    if (options.strict || error.kind() == ErrorKind::kCanceled) throw;
    if (images.size() == 1) {
      Explanation failed;
      failed.image = images[0];
      failed.error = error.what();
      return {failed};
    }
  }
  std::vector<Explanation> out;
  for (size_t b = 0; b < images.size(); ++b)
    out.push_back(explained_or_failed(by, method, pixels.narrow(0, static_cast<int64_t>(b), 1), {images[b]},
                                      options, context, scorer)[0]);
  return out;
}

// Files of these names that `aha explain` did not make stay as they are: what it makes has its JSON beside
// it.
void check_files_are_own(const std::string& folder, const std::vector<std::string>& stems) {
  for (const auto& stem : stems) {
    const std::string base = (fs::path(folder) / stem).string();
    for (const char* ending : {".map.npy", ".heat.png", ".overlay.png", ".sheet.png", ".json"}) {
      if (!fs::exists(base + ending)) continue;
      const auto json = fs::is_regular_file(base + ".json")
                            ? nlohmann::json::parse(read_file(base + ".json"), nullptr, false)
                            : nlohmann::json();
      if (json.is_object() && json.contains("image") && json.contains("map")) break;
      throw input_error("{}: exists and was not made by aha explain; --overwrite replaces it",
                        printable(base + ending, 300));
    }
  }
}

}  // namespace

Fields fields(ExplainOptions& o) {
  return Fields()
      .add("method", o.method,
           "aha or any other method, NAME:key=value:key=value (`aha models` and docs/methods.md have them "
           "all)")
      .add("refine", o.refine, "steps on this image before the map is taken (method aha)")
      .range(0, 100000)
      .add("budget", o.budget, "refine as far as this time allows for each image: 200ms, 1.5s")
      .add("class", o.wanted, "the class to explain: predicted, an index or a name")
      .add("out", o.out,
           "folder for STEM.map.npy, STEM.heat.png, STEM.overlay.png, STEM.sheet.png and STEM.json")
      .add("size", o.size,
           "of STEM.heat.png and STEM.overlay.png: what the network sees, or the photo with that part marked")
      .choices({"network", "original"})
      .add("contours", o.heat.contours, "lines around the top 10, 25 and 50 % of the pixels")
      .add("sheet", o.sheet, "STEM.sheet.png: photo, overlay, curves and scores on one page")
      .add("score", o.score, "deletion and insertion of the map, and of a random one")
      .add("strict", o.strict, "stop at the first image that fails instead of leaving it out")
      .add("overwrite", o.overwrite, "replace files in --out that aha explain did not make")
      .nest("heat-", fields(o.heat));
}

double milliseconds_from_text(const std::string& text) {
  double value = 0;
  const char* all = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), all, value);
  const std::string_view unit(end, static_cast<size_t>(all - end));
  if (code != std::errc() || !(value > 0) || !std::isfinite(value) || (unit != "ms" && unit != "s"))
    throw input_error("--budget: expected a time with its unit like 200ms or 1.5s, found '{}'",
                      printable(text));
  return unit == "s" ? 1000 * value : value;
}

void explain(const MethodContext& explained_by, const std::vector<std::string>& images,
             const ExplainOptions& given, const std::function<void(const Explanation&)>& each,
             const Context& context) {
  ExplainOptions options = given;
  options.strict |= images.size() == 1;
  const auto& info = explained_by.target.info();
  const auto method = method_of(options, explained_by);
  if (options.wanted != "predicted") class_from_text(options.wanted, info);  // refused before any work
  const auto stems = file_stems(images);
  if (!options.out.empty() && !options.overwrite) check_files_are_own(options.out, stems);
  if (!options.out.empty()) make_directories(options.out);
  std::optional<Scorer> scorer;
  if (options.score) {
    const TimeSpent time("weights of the score");
    scorer.emplace(explained_by.target, context);
  }

  KeptPhotos photos(info.input, options.size == "original" ? 0 : kSheetPhotoSide);

  const int64_t batch = method->timed() ? 1 : context.batch_size > 0 ? context.batch_size : kBatch;
  const InputBatches inputs{"explain", std::ssize(images), batch,
                            [&](int64_t i) {
                              const TimeSpent time("decoding");
                              return photos.keep(i, read_image(images[i]));
                            },
                            options.strict};
  for_input_batches(inputs, info.input, context, [&](const InputBatch& read) {
    std::map<int64_t, Explanation> done;
    for (const auto& [i, reason] : read.failures) {
      done[i].image = images[i];
      done[i].error = reason;
      photos.drop(i);
    }
    std::vector<std::string> names;
    for (const int64_t i : read.indices) names.push_back(images[i]);
    if (!names.empty()) {
      auto made = explained_or_failed(explained_by, *method, read.pixels, names, options, context,
                                      scorer ? &*scorer : nullptr);
      for (size_t b = 0; b < made.size(); ++b) {
        const int64_t i = read.indices[b];
        const KeptPhoto photo = photos.take(i);
        made[b].seen = photo.seen_originally;
        const TimeSpent time("files");
        if (made[b].error.empty() && !options.out.empty())
          write_files(made[b], read.pixels[static_cast<int64_t>(b)], photo, stems[i], info, options);
        done[i] = std::move(made[b]);
      }
    }
    for (const auto& [i, one] : done) {
      if (!one.error.empty()) tell_failure(one.image, one.error);
      each(one);
    }
  });
}

nlohmann::ordered_json json_from(const Explanation& e) {
  if (!e.error.empty()) return {{"image", e.image}, {"error", e.error}};
  const Tensor& map = e.scored.map;
  nlohmann::ordered_json json = {{"image", e.image}, {"class", json_from(e.chosen)}, {"method", e.method}};
  json["map"] = {{"file", e.map_file},
                 {"height", map.size(0)},
                 {"width", map.size(1)},
                 {"min", map.min().item<double>()},
                 {"max", map.max().item<double>()}};
  // In pixels of the photo, turned as its EXIF tag says: where the map is.
  json["part"] = {
      {"left", e.seen.left}, {"top", e.seen.top}, {"right", e.seen.right}, {"bottom", e.seen.bottom}};
  if (!e.map_file.empty()) json["files"] = {{"heat", e.heat_file}, {"overlay", e.overlay_file}};
  if (!e.sheet_file.empty()) json["files"]["sheet"] = e.sheet_file;
  add_to_json(json, e.scored);
  if (e.scored.score) json["curves"] = json_from_curves(*e.scored.score);
  if (e.random) {
    json["random"] = {{"deletion", e.random->deletion}, {"insertion", e.random->insertion}};
    json["references"] = e.references;
    json["score_precision"] = e.score_precision;
  }
  return json;
}

}  // namespace aha
