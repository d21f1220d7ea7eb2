#include "aha/app/compare.h"

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/cli/command.h"
#include "aha/cli/target_options.h"
#include "aha/data/dataset.h"
#include "aha/image/png.h"
#include "aha/networks/catalog.h"

namespace aha {
namespace {

struct CompareFlags {
  TargetOptions target;
  std::vector<std::string> methods = {"gradient", "ig", "rise:masks=500"};
  std::string explainer, encoder, wanted = "predicted", out = ".";
  std::vector<std::string> pictures;
};

Fields fields(CompareFlags& f) {
  return fields(f.target)
      .add("methods", f.methods, "methods, NAME:key=value:key=value each (see `aha models`)")
      .add("explainer", f.explainer, kExplainerHelp)
      .add("encoder", f.encoder, kEncoderHelp)
      .add("class", f.wanted, "the class that is explained: predicted, an index or a name")
      .add("out", f.out, "folder of STEM.compare.png");
}

nlohmann::json json_from(const Compared& c, const std::string& file) {
  nlohmann::json methods = nlohmann::json::array();
  for (const auto& m : c.methods)
    methods.push_back(
        {{"method", m.method}, {"deletion", m.deletion}, {"insertion", m.insertion}, {"seconds", m.seconds}});
  return {{"image", c.image},
          {"class", {{"index", c.class_index}, {"name", c.class_name}, {"probability", c.probability}}},
          {"methods", methods},
          {"file", file}};
}

void print(const Compared& c, const std::string& file) {
  fmt::print("{}: {} {} ({:.1f} %) -> {}\n", c.image, c.class_index, c.class_name, 100 * c.probability, file);
  for (const auto& m : c.methods)
    fmt::print("  {:<28} insertion {:.4f}  deletion {:.4f}  ins-del {:+.4f}  {:.3f} s\n", m.method,
               m.insertion, m.deletion, m.insertion - m.deletion, m.seconds);
  std::fflush(stdout);
}

void run(const CompareFlags& flags, Call& call) {
  if (flags.methods.empty()) throw input_error("--methods: expected one method or more, found none");
  const auto target = load_target(flags.target, call.context);
  auto explainer = explainer_for(flags.explainer, *target, call.context, flags.encoder);
  make_directories(flags.out);
  nlohmann::json all = nlohmann::json::array();
  for (const auto& picture : picture_files(flags.pictures)) {
    const Compared compared = compare({*target, explainer ? &*explainer : nullptr}, picture,
                                      flags.methods, flags.wanted, call.context);
    const auto file =
        (std::filesystem::path(flags.out) / (std::filesystem::path(picture).stem().string() + ".compare.png"))
            .string();
    write_png(file, compared.sheet);
    if (call.common.json)
      all.push_back(json_from(compared, file));
    else
      print(compared, file);
  }
  if (call.common.json) call.print(all);
}

}  // namespace

Command compare_command() {
  return {"compare", "one picture, several methods side by side, each with the score of its map",
          "  aha compare --target vit_ti_16:vit_tiny.safetensors --methods gradcam,chefer,rollout,ig:blur=4 "
          "--out sheets cat.jpg\n"
          "  aha compare --target script:model.pt --methods gradient,rise:masks=500 --class 281 --out sheets "
          "cat.jpg",
          [](Declaration& d) -> Run {
            auto flags = std::make_shared<CompareFlags>();
            d.add(fields(*flags));
            d.positionals("IMG", flags->pictures, "pictures (JPEG, PNG, WebP) or folders of them", true);
            return [flags](Call& call) { run(*flags, call); };
          }};
}

}  // namespace aha
