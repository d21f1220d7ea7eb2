#include "aha/app/classify.h"

#include "aha/base/error.h"
#include "aha/cli/command.h"
#include "aha/cli/target_options.h"

namespace aha {
namespace {

struct ClassifyFlags {
  TargetOptions target;
  int topk = 5;
  std::string data;
  SliceOptions slice;
  bool strict = false;
  std::vector<std::string> images;
};

Fields fields(ClassifyFlags& f) {
  return fields(f.target)
      .add("topk", f.topk, "how many classes an image")
      .range(1, 100000)
      .add("data", f.data,
           "a data set: print the accuracy on it instead (list:FILE.csv, folder:DIR, imagenet:DIR)")
      .nest("", fields(f.slice))
      .add("strict", f.strict, kStrictHelp);
}

nlohmann::json json_from(const Classified& one) {
  if (!one.error.empty()) return {{"image", one.image}, {"error", one.error}};
  nlohmann::json classes = nlohmann::json::array();
  for (const auto& c : one.classes) classes.emplace_back(json_from(c));
  return {{"image", one.image}, {"classes", classes}};
}

void run_images(const ClassifyFlags& flags, Classifier& target, Call& call) {
  nlohmann::json all = nlohmann::json::array();
  int64_t failed = 0;
  const auto images = image_files(flags.images);
  classify(
      target, images, flags.topk, flags.strict,
      [&](const Classified& one) {
        failed += !one.error.empty();
        if (call.common.json) {
          all.push_back(json_from(one));
          return;
        }
        if (!one.error.empty()) return;
        fmt::print("{}\n", one.image);
        for (const auto& c : one.classes)
          fmt::print("  {:6.2f} %  {:>5}  {}\n", 100 * c.probability, c.index, c.name);
        flush_output();
      },
      call.context);
  call.count_failures(failed, std::ssize(images));
  if (call.common.json) call.print(all);
}

void run_accuracy(const ClassifyFlags& flags, Classifier& target, Call& call) {
  const auto data = slice(open_dataset(flags.data), flags.slice);
  const Accuracy a = accuracy(target, *data, flags.strict, call.context);
  call.count_failures(std::ssize(a.failures), data->size());
  nlohmann::json failures = nlohmann::json::array();
  for (const auto& [image, reason] : a.failures) failures.push_back({{"image", image}, {"error", reason}});
  if (call.common.json)
    call.print({{"target", target.info().name},
                {"data", flags.data},
                {"images", a.images},
                {"top1", a.top1},
                {"top5", a.top5},
                {"failures", failures},
                {"images_per_second", a.images_per_second}});
  else
    fmt::print("{} on {}: top-1 {:.2f} %, top-5 {:.2f} % of {} images ({:.1f} images/s)\n",
               target.info().name, flags.data, 100 * a.top1, 100 * a.top5, a.images, a.images_per_second);
}

void run(const ClassifyFlags& flags, Call& call) {
  if (flags.images.empty() == flags.data.empty())
    throw input_error("expected images or --data, found {}", flags.data.empty() ? "neither" : "both");
  const auto target = load_target(flags.target, call.context);
  flags.data.empty() ? run_images(flags, *target, call) : run_accuracy(flags, *target, call);
}

}  // namespace

Command classify_command() {
  return {"classify", "the most probable classes of images, or the accuracy on a data set",
          "  aha classify --target cifar10-vit4 --topk 3 images/00000_cat.png\n"
          "  aha classify --target cifar10-vit4 --data cifar10:sample --limit 100",
          with_flags<ClassifyFlags>(run, {"IMG", &ClassifyFlags::images, kImagesHelp, false}),
          "  aha classify --target vit_b_16:vit_b_16-c867db91.pth cat.jpg\n"
          "  aha classify --target script:model.pt --input-size 224 --topk 3 --json photos/\n"
          "  aha classify --target vit_ti_16:vit_tiny.safetensors --data list:val.csv"};
}

}  // namespace aha
