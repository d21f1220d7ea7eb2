#include <map>

#include "aha/app/get.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/cli/command.h"
#include "aha/data/dataset.h"
#include "aha/image/png.h"

namespace aha {
namespace {

struct DataFlags {
  std::vector<std::string> words;
  std::string from, out;
  SliceOptions slice;  // of an export
};

Fields fields(DataFlags& f) {
  return Fields()
      .add("from", f.from, "get: take it from this archive or folder instead of the package registry")
      .add("out", f.out, "export: the folder for the images")
      .nest("", fields(f.slice));
}

void info(const std::string& spec, Call& call) {
  const auto data = open_dataset(spec);
  const auto names = data->class_names();
  std::map<int, int64_t> counts;
  for (int64_t i = 0; i < data->size(); ++i) ++counts[data->label(i)];
  const Image first = data->image(0);
  if (call.common.json) {
    nlohmann::json classes = nlohmann::json::array();
    for (const auto& [label, count] : counts)
      classes.push_back({{"index", label},
                         {"name", label >= 0 && label < static_cast<int>(names.size()) ? names[label] : ""},
                         {"images", count}});
    return call.print({{"data", data->name()},
                       {"images", data->size()},
                       {"classes", classes},
                       {"first", {{"id", data->id(0)}, {"width", first.width}, {"height", first.height}}}});
  }
  fmt::print("{}: {} images, {} classes; the first is {} ({} x {} pixels)\n", data->name(), data->size(),
             counts.size(), data->id(0), first.width, first.height);
  constexpr size_t kMost = 20;
  size_t shown = 0;
  for (const auto& [label, count] : counts) {
    if (++shown > kMost) {
      fmt::print("  ... and {} classes more\n", counts.size() - kMost);
      break;
    }
    fmt::print("  {:>5}  {:>7} images  {}\n", label, count,
               label < 0                                ? "without a label"
               : label < static_cast<int>(names.size()) ? names[label]
                                                        : "");
  }
}

// One PNG an image: NUMBER_CLASS.png
void export_images(const std::string& spec, const DataFlags& flags, Call& call) {
  if (flags.out.empty()) throw input_error("--out: expected a folder for the images, found nothing");
  const auto data = slice(open_dataset(spec), flags.slice);
  const auto names = data->class_names();
  make_directories(flags.out);
  auto progress = call.context.progress("export", data->size());
  for (int64_t i = 0; i < data->size(); ++i) {
    call.context.cancel->check();
    const int label = data->label(i);
    const bool named = label >= 0 && label < static_cast<int>(names.size());
    write_png(fmt::format("{}/{:05}_{}.png", flags.out, flags.slice.skip + flags.slice.every * i,
                          named ? names[label] : std::to_string(label)),
              data->image(i));
    progress.advance();
  }
  if (call.common.json) return call.print({{"data", spec}, {"folder", flags.out}, {"images", data->size()}});
  fmt::print("{} images in {}\n", data->size(), flags.out);
}

void run(const DataFlags& flags, Call& call) {
  const auto& words = flags.words;
  if (words.size() == 2 && words[0] == "get") return get_and_print({words[1], flags.from}, call);
  if (words.size() == 2 && words[0] == "info") return info(words[1], call);
  if (words.size() == 2 && words[0] == "export") return export_images(words[1], flags, call);
  throw input_error("expected `aha data get NAME`, `info DATA` or `export DATA`, found `aha data {}`",
                    fmt::join(words, " "));
}

}  // namespace

Command data_command() {
  return {"data",
          "describe a data set, or write its images as files",
          "  aha data export cifar10:sample --limit 8 --out images\n"
          "  aha data info cifar10:sample",
          with_flags<DataFlags>(run, {"WHAT", &DataFlags::words, "get NAME, info DATA or export DATA"}),
          "",
          {},
          {"json", "quiet", "verbose"}};
}

}  // namespace aha
