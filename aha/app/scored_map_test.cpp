#include "aha/app/scored_map.h"

#include <gtest/gtest.h>

#include "aha/methods/catalog.h"
#include "aha/perturb/reference.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

TEST(ScoredMap, ScoresDoNotDependOnWhoIsScoredTogether) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("vit", 16));
  Context context;
  context.quiet = true;
  const Tensor pixels = torch::rand({2, 3, 16, 16});
  const Tensor classes = torch::tensor({0, 1}, torch::kInt64);
  const auto references = all_references(pixels, with_mean_color({}, target.info().mean_color));
  const std::vector<std::string> images = {"one", "two"};
  const auto maps_of = [&](const char* method) {
    return made_maps(*make_method(method, {target}), method, pixels, classes, images, context);
  };
  auto gradient = maps_of("gradient"), random = maps_of("random");
  EXPECT_FALSE(gradient[0].score);
  Scorer scorer(target, context);
  std::vector<ScoredMap>* const both[] = {&gradient, &random};
  scorer.score(both, pixels, classes, references);
  for (const auto* made : {&gradient, &random})
    for (int64_t b = 0; b < 2; ++b) {
      const Tensor one = pixels.narrow(0, b, 1), map = (*made)[b].map.unsqueeze(0);
      std::vector<Tensor> its;
      for (const auto& reference : references) its.push_back(reference.narrow(0, b, 1));
      const MapScore alone = score_maps(target, one, map, classes.narrow(0, b, 1), its, context)[0];
      EXPECT_EQ(alone.deletion, (*made)[b].score->deletion);
      EXPECT_EQ(alone.insertion, (*made)[b].score->insertion);
    }
  EXPECT_NE(gradient[0].score->deletion, random[0].score->deletion);
}

}  // namespace
}  // namespace aha
