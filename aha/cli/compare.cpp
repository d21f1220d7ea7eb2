#include "aha/app/compare.h"

#include "aha/cli/command.h"
#include "aha/cli/target_options.h"
#include "aha/data/dataset.h"

namespace aha {
namespace {

struct CompareFlags {
  TargetOptions target;
  std::string explainer, encoder;
  CompareOptions compare;
  std::vector<std::string> images;
};

Fields fields(CompareFlags& f) {
  return fields(f.target)
      .add("explainer", f.explainer, kExplainerHelp)
      .add("encoder", f.encoder, kEncoderHelp)
      .nest("", fields(f.compare));
}

void print(const Compared& c) {
  fmt::print("{}: {} {} ({:.1f} %) -> {}\n", c.image, c.chosen.index, c.chosen.name,
             100 * c.chosen.probability, c.file);
  for (const auto& [method, m] : c.methods)
    fmt::print("  {:<28} insertion {:.4f}  deletion {:.4f}  ins-del {:+.4f}  {:.3f} s  {}\n", method,
               m.score->insertion, m.score->deletion, m.score->insertion - m.score->deletion, m.seconds,
               text_from_passes(m.made.passes));
  flush_output();
}

void run(const CompareFlags& flags, Call& call) {
  const auto target = load_target(flags.target, call.context);
  auto explainer = explainer_for(flags.explainer, *target, call.context, flags.encoder);
  nlohmann::json all = nlohmann::json::array();
  int64_t failed = 0;
  const auto images = image_files(flags.images);
  const auto each = [&](const Compared& one) {
    failed += !one.error.empty();
    if (call.common.json)
      all.push_back(nlohmann::json(json_from(one)));
    else if (one.error.empty())
      print(one);
  };
  compare({*target, explainer ? &*explainer : nullptr}, images, flags.compare, each, call.context);
  call.count_failures(failed, std::ssize(images));
  if (call.common.json) call.print(all);
}

}  // namespace

Command compare_command() {
  return {"compare", "methods side by side on one sheet for each image, each map with its score",
          "  aha compare --target cifar10-vit4 --methods all --out sheets frog.png\n"
          "  aha compare --target vit_ti_16:vit_tiny.safetensors --methods gradcam,chefer,rollout,ig:blur=4 "
          "--out sheets cat.jpg\n"
          "  aha compare --target script:model.pt --methods gradient,rise:masks=500 --class 281 --out sheets "
          "cat.jpg",
          with_flags<CompareFlags>(run, {"IMG", &CompareFlags::images, kImagesHelp})};
}

}  // namespace aha
