// Explains one image through the library, as `aha explain` does:
//
//   01_explain_one_image TARGET METHOD IMAGE OUT [EXPLAINER]
//   01_explain_one_image cifar10-convnext aha:T=3 frog.png maps aha-cifar10-convnext
#include <cstdio>

#include "aha/app/explain.h"
#include "aha/base/startup.h"
#include "aha/explainer/explainer_catalog.h"

int main(int argc, char** argv) try {
  aha::prepare_process(argv);
  if (argc < 5) return std::fprintf(stderr, "usage: %s TARGET METHOD IMAGE OUT [EXPLAINER]\n", argv[0]), 2;
  aha::Context context;
  aha::start_compute(context);

  const auto target = aha::load_classifier(argv[1], {}, context);
  aha::LoadedExplainer explainer;
  if (argc > 5) explainer = aha::load_explainer(argv[5], target.get(), context);

  aha::ExplainOptions options;
  options.method = argv[2];
  options.out = argv[4];
  aha::explain(
      {*target, argc > 5 ? &explainer : nullptr}, {argv[3]}, options,
      [](const aha::Explanation& e) {
        std::printf("%s: class %d, probability %.3f, deletion %.3f, insertion %.3f, map %s\n",
                    e.image.c_str(), e.chosen.index, e.chosen.probability, e.scored.score->deletion,
                    e.scored.score->insertion, e.map_file.c_str());
      },
      context);
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
