#include "aha/app/explain.h"

#include <cmath>

#include "aha/cli/command.h"
#include "aha/cli/target_options.h"
#include "aha/data/dataset.h"

namespace aha {
namespace {

struct ExplainFlags {
  TargetOptions target;
  std::string explainer, encoder;
  ExplainOptions explain;
  std::vector<std::string> images;
};

Fields fields(ExplainFlags& f) {
  return fields(f.target)
      .add("explainer", f.explainer, kExplainerHelp)
      .add("encoder", f.encoder, kEncoderHelp)
      .nest("", fields(f.explain));
}

// "refined 5 steps to loss 0.4102, 301 F + 300 B": the steps done, and the passes of the target.
std::string effort_text(const Attribution::Made& made) {
  const std::string passes = text_from_passes(made.passes);
  if (made.steps == 0) return passes;
  const std::string steps = fmt::format("refined {} step{}", made.steps, made.steps == 1 ? "" : "s");
  if (std::isnan(made.loss)) return fmt::format("{} without gain: the map before is kept, {}", steps, passes);
  return fmt::format("{} to loss {:.4f}, {}", steps, made.loss, passes);
}

void print(const Explanation& e) {
  fmt::print("{}\n", e.image);
  fmt::print("  class {} {}, probability {:.3f}, map in {:.0f} ms ({})\n", e.chosen.index, e.chosen.name,
             e.chosen.probability, 1000 * e.scored.seconds, effort_text(e.scored.made));
  if (const auto& score = e.scored.score)
    fmt::print("  deletion {:.3f} (random {:.3f}), insertion {:.3f} (random {:.3f})\n", score->deletion,
               e.random->deletion, score->insertion, e.random->insertion);
  if (!e.map_file.empty()) fmt::print("  {}\n  {}\n  {}\n", e.map_file, e.heat_file, e.overlay_file);
  if (!e.sheet_file.empty()) fmt::print("  {}\n", e.sheet_file);
  flush_output();
}

void run(const ExplainFlags& flags, Call& call) {
  const auto target = load_target(flags.target, call.context);
  auto explainer = explainer_for(flags.explainer, *target, call.context, flags.encoder);
  nlohmann::json all = nlohmann::json::array();
  int64_t failed = 0;
  const auto images = image_files(flags.images);
  const auto each = [&](const Explanation& one) {
    failed += !one.error.empty();
    if (call.common.json)
      all.push_back(nlohmann::json(json_from(one)));
    else if (one.error.empty())
      print(one);
  };
  explain({*target, explainer ? &*explainer : nullptr}, images, flags.explain, each, call.context);
  call.count_failures(failed, std::ssize(images));
  if (call.common.json) call.print(all);
}

}  // namespace

Command explain_command() {
  return {
      "explain", "which pixels drove the target's decision: a map per image, with its score",
      "  aha explain --target cifar10-vit4 --out maps images/00000_cat.png\n"
      "  aha explain --target cifar10-convnext --method gradcam --class dog --out dog-maps images",
      with_flags<ExplainFlags>(run, {"IMG", &ExplainFlags::images, kImagesHelp}),
      "  aha explain --target vit_b_16:vit_b_16.pth --explainer my-explainer --refine 3 --out maps photos/\n"
      "  aha explain --target vit_ti_16:vit_tiny.safetensors --method chefer --class 'tabby' --out maps "
      "cat.jpg"};
}

}  // namespace aha
