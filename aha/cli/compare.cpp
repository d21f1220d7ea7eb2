#include "aha/app/compare.h"

#include "aha/base/terminal.h"
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
  const auto width = static_cast<size_t>(terminal_width(1));
  const bool color = wants_color(1);
  fmt::print("{}: {} {} ({:.1f} %) -> {}\n", shortened(c.image, width / 3), c.chosen.index, c.chosen.name,
             100 * c.chosen.probability, c.file);
  using Align = TextTable::Align;
  TextTable table({{"method", Align::kLeft},
                   {"ins-del"},
                   {"insertion"},
                   {"deletion"},
                   {"seconds"},
                   {"passes", Align::kLeft, false}});
  const auto ins_del = [](const ComparedMethod& m) {
    return m.scored.score->insertion - m.scored.score->deletion;
  };
  double best = -2;
  for (const auto& m : c.methods) best = std::max(best, ins_del(m));
  for (const auto& m : c.methods)
    table.row({m.method, fmt::format("{:+.4f}", ins_del(m)), fmt::format("{:.4f}", m.scored.score->insertion),
               fmt::format("{:.4f}", m.scored.score->deletion), fmt::format("{:.3f}", m.scored.seconds),
               text_from_passes(m.scored.made.passes)},
              ins_del(m) == best ? Style::kGood : Style::kPlain);
  fmt::print("{}", table.text(width, color, 2));
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
          "  aha compare --target cifar10-vit4 --out sheets images/00000_cat.png\n"
          "  aha compare --target cifar10-convnext --methods aha,gradcam,rise:masks=50 --together --out "
          "sheet images",
          with_flags<CompareFlags>(run, {"IMG", &CompareFlags::images, kImagesHelp}),
          "  aha compare --target vit_ti_16:vit_tiny.safetensors --methods gradcam,chefer,rollout,ig:blur=4 "
          "--out sheets cat.jpg\n"
          "  aha compare --target script:model.pt --methods gradient,rise:masks=500 --class 281 --out sheets "
          "cat.jpg"};
}

}  // namespace aha
