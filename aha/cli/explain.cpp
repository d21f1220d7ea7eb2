#include "aha/app/explain.h"

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/cli/command.h"
#include "aha/cli/target_options.h"
#include "aha/data/dataset.h"
#include "aha/networks/catalog.h"

namespace aha {
namespace {

struct ExplainFlags {
  TargetOptions target;
  std::string explainer, encoder;
  ExplainOptions explain;
  std::vector<std::string> pictures;
};

Fields fields(ExplainFlags& f) {
  return fields(f.target)
      .add("explainer", f.explainer, kExplainerHelp)
      .add("encoder", f.encoder, kEncoderHelp)
      .nest("", fields(f.explain));
}

void print(const Explanation& e) {
  fmt::print("{}\n", e.image);
  fmt::print("  class {} {}, probability {:.3f}, map in {:.0f} ms\n", e.class_index, e.class_name, e.probability, 1000 * e.seconds);
  if (e.score)
    fmt::print("  deletion {:.3f} (random {:.3f}), insertion {:.3f} (random {:.3f})\n", e.score->deletion, e.random->deletion, e.score->insertion,
               e.random->insertion);
  if (!e.map_file.empty()) fmt::print("  {}\n  {}\n  {}\n", e.map_file, e.heat_file, e.overlay_file);
  std::fflush(stdout);
}

}  // namespace

Command explain_command() {
  return {"explain", "which pixels made the target decide so: a map for each picture, with its score",
          "  aha explain --target cifar10-convnext --out maps photo.png\n"
          "  aha explain --target vit_b_16:vit_b_16.pth --explainer my-explainer --refine 3 --out maps photos/\n"
          "  aha explain --target vit_ti_16:vit_tiny.safetensors --method chefer --class 'tabby' --out maps cat.jpg",
          [](Declaration& d) -> Run {
            auto flags = std::make_shared<ExplainFlags>();
            d.add(fields(*flags));
            d.positionals("IMG", flags->pictures, "pictures (JPEG, PNG, WebP) or folders of them", true);
            return [flags](Call& call) {
              const auto target = load_target(flags->target, call.context);
              auto explainer = explainer_for(flags->explainer, *target, call.context, flags->encoder);
              nlohmann::json all = nlohmann::json::array();
              explain({*target, explainer ? &*explainer : nullptr}, picture_files(flags->pictures), flags->explain,
                      [&](const Explanation& one) {
                        if (call.common.json)
                          all.push_back(nlohmann::json(json_from(one)));
                        else
                          print(one);
                      },
                      call.context);
              if (call.common.json) call.print(all);
            };
          }};
}

}  // namespace aha
