#include "aha/methods/fitting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "aha/base/error.h"
#include "aha/methods/catalog.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_explainer.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Fitting, AllAreThoseThatCanBeMade) {
  VitClassifier vit(checks::tiny_vit(), checks::plain_info("vit", 16));
  checks::LinearTarget closed;
  for (Classifier* target : {static_cast<Classifier*>(&vit), static_cast<Classifier*>(&closed)}) {
    const auto names = fitting_methods({*target});
    for (const auto& record : method_catalog()) {
      SCOPED_TRACE(record.name);
      if (std::find(names.begin(), names.end(), record.name) != names.end()) {
        EXPECT_NO_THROW(make_method(record.name, {*target}));
      } else {
        EXPECT_THROW(make_method(record.name, {*target}), Error);
      }
    }
  }
  EXPECT_THAT(fitting_methods({closed}), Not(Contains("rollout")));
}

TEST(Fitting, TheQuickOnesDependOnTheTargetAndEndWithTheControl) {
  ConvNextClassifier target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  auto explainer = checks::tiny_explainer(target);
  EXPECT_THAT(quick_methods({target}),
              ElementsAre("gradcam", "layercam", "gradient", "rise:masks=100", "center"));
  EXPECT_THAT(quick_methods({target, &explainer}),
              ElementsAre("aha", "gradcam", "layercam", "gradient", "rise:masks=100", "center"));
  VitClassifier vit(checks::tiny_vit(), checks::plain_info("vit", 16));
  EXPECT_THAT(quick_methods({vit}),
              ElementsAre("chefer", "legrad", "gradcam", "gradient", "rise:masks=100", "center"));
  for (const auto& name : quick_methods({vit})) EXPECT_NO_THROW(make_method(name, {vit})) << name;
}

TEST(Fitting, WithoutAnExplainerOneLineSaysWhatToDo) {
  VitClassifier vit(checks::tiny_vit(), checks::plain_info("vit", 16));
  checks::LinearTarget closed;
  const std::string said = checks::message_of([&] { make_method("aha", {vit}); });
  EXPECT_THAT(said, HasSubstr("aha train --target vit --data"));
  EXPECT_THAT(said, HasSubstr("--method chefer|legrad|gradcam"));
  EXPECT_THAT(said, HasSubstr("--method optimized"));
  EXPECT_THAT(without_an_explainer({closed}), HasSubstr("--encoder")) << "it cannot be looked into";
  EXPECT_THAT(without_an_explainer({closed}), Not(HasSubstr("chefer")));
}

TEST(Fitting, AllStandsForWhatIsNotAskedForAlready) {
  checks::LinearTarget target;
  const auto all = fitting_methods({target});
  EXPECT_EQ(chosen_methods({"all"}, {target}), all);
  EXPECT_EQ(chosen_methods({}, {target}), quick_methods({target}));
  EXPECT_THAT(chosen_methods({"ig:steps=3", "ig"}, {target}), ElementsAre("ig:steps=3", "ig"));
  const auto with_options = chosen_methods({"rise:masks=9", "all", "ig", "all"}, {target});
  EXPECT_EQ(with_options.size(), all.size() + 1) << "rise:masks=9 is a method of its own";
  EXPECT_EQ(with_options.front(), "rise:masks=9");
  EXPECT_EQ(with_options.back(), "ig");
}

}  // namespace
}  // namespace aha
