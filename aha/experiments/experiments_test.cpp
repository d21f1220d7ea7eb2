#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/experiments/claim.h"
#include "aha/experiments/experiment.h"
#include "aha/experiments/section.h"

namespace aha {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json small_recipe() {
  return {{"title", "T"},
          {"summary", "S."},
          {"every-train", {{"target", "t"}, {"options", {{"lr", 1}, {"tau", 2}}}}},
          {"train", {{{"name", "a"}, {"options", {{"tau", 3}}}}}},
          {"run", {{{"name", "r"}, {"target", "t"}, {"explainer", "made:a"}, {"methods", {"aha"}}}}}};
}

std::string refusal(const json& recipe) {
  try {
    recipe_from_json("x", recipe, "x.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

OutcomeRow row_of(const std::string& name, std::vector<double> values) {
  OutcomeRow row{"b", "predicted", name, "P"};
  const double m = mean(values);
  row.image_set = "same", row.images = std::ssize(values);
  row.found["insertion"] = {{m, m - 0.01, m + 0.01}, values};
  return row;
}

Outcome three_rows() {
  Outcome outcome;
  outcome.columns = {{"insertion", 1}};
  outcome.rows = {row_of("x", {0.1, 0.2, 0.3}), row_of("y", {0.2, 0.3, 0.4}), row_of("z", {0.15, 0.2, 0.4})};
  return outcome;
}

TEST(Recipe, StepsTakeWhatAllOfThemShare) {
  const Recipe r = recipe_from_json("x", small_recipe(), "x.toml");
  ASSERT_EQ(r.trains.size(), 1u);
  EXPECT_EQ(r.trains[0].target, "t");
  EXPECT_EQ(r.trains[0].options, (json{{"lr", 1}, {"tau", 3}}));
}

TEST(Recipe, RefusesWhatItDoesNotKnow) {
  json r = small_recipe();
  r["run"][0]["explainer"] = "made:b";
  EXPECT_THAT(refusal(r), HasSubstr("'b'"));
  r = small_recipe();
  r["run"][0]["name"] = "a";
  EXPECT_THAT(refusal(r), HasSubstr("two 'a'"));
  r = small_recipe();
  r["run"][0]["methdos"] = "aha";
  EXPECT_THAT(refusal(r), HasSubstr("methdos"));
  r = small_recipe();
  r["run"][0]["rows"] = {"one", "two"};
  EXPECT_THAT(refusal(r), HasSubstr("expected 1 rows"));
  r = small_recipe();
  r["paper"] = {{{"of", "P"}, {"columns", {"insertion"}}, {"rows", {{"x", {1, 2}}}}}};
  EXPECT_THAT(refusal(r), HasSubstr("expected 1 numbers"));
}

TEST(Recipe, EveryShippedOneIsRead) {
  for (const auto& name : experiment_names()) EXPECT_FALSE(experiment_named(name).summary.empty()) << name;
}

TEST(Adapted, QuickNeedsNoDownloadAndFewImages) {
  ExperimentOptions quick;
  quick.quick = true;
  for (const auto& name : experiment_names()) {
    const Recipe r = adapted(experiment_named(name), quick);
    for (const auto& s : r.runs) {
      EXPECT_LE(s.choice.images, 2) << name;
      EXPECT_TRUE(s.choice.data == "cifar10:sample" || s.choice.data.starts_with("made:") || !r.needs.empty())
          << name << " " << s.choice.data;
    }
    for (const auto& s : r.trains) EXPECT_EQ(s.options["max-steps"], 2) << name;
  }
}

TEST(Adapted, TheUsersDataAndTargetReplaceTheRecipes) {
  ExperimentOptions options;
  options.data = "list:mine.csv", options.target = "dir", options.explainer = "e", options.images = 7;
  Recipe r = adapted(recipe_from_json("x", small_recipe(), "x.toml"), options);
  EXPECT_EQ(r.runs[0].choice.data, "list:mine.csv");
  EXPECT_EQ(r.runs[0].choice.images, 7);
  EXPECT_EQ(r.runs[0].target, "dir");
  EXPECT_EQ(r.runs[0].explainer, "made:a");  // is trained for that target
  EXPECT_EQ(r.trains[0].target, "dir");
}

TEST(Claim, EachKindHoldsAndFails) {
  const Outcome outcome = three_rows();
  const auto holds = [&](const Claim& claim) {
    const auto all = verdicts(claim, outcome);
    EXPECT_EQ(all.size(), 1u);
    return !all.empty() && all[0].holds;
  };
  EXPECT_TRUE(holds({"", "insertion", "rising", "", {"x", "z", "y"}}));
  EXPECT_FALSE(holds({"", "insertion", "rising", "", {"x", "y", "z"}}));
  EXPECT_TRUE(holds({"", "insertion", "above", "y", {"*"}}));
  EXPECT_FALSE(holds({"", "insertion", "above", "z", {"*"}}));
  EXPECT_TRUE(holds({"", "insertion", "within", "y", {"x"}, 0.11}));
  EXPECT_FALSE(holds({"", "insertion", "within", "y", {"x"}, 0.09}));
  EXPECT_TRUE(holds({"", "insertion", "times", "y", {"x"}, 1.4}));
  EXPECT_FALSE(holds({"", "insertion", "times", "y", {"x"}, 1.6}));
  EXPECT_TRUE(verdicts({"", "deletion", "above", "y", {"x"}}, outcome).empty());
}

TEST(Claim, DifferencesArePairedByImage) {
  const auto all = verdicts({"", "insertion", "above", "y", {"x"}}, three_rows());
  EXPECT_TRUE(all[0].separable);  // 0.1 on each image
  EXPECT_THAT(all[0].figures, HasSubstr("+0.1000 [+0.1000, +0.1000]"));
  EXPECT_FALSE(verdicts({"", "insertion", "above", "z", {"x"}}, three_rows())[0].separable);
}

TEST(Section, ThePapersFigureStandsBesideOurs) {
  json r = small_recipe();
  r["paper"] = {{{"of", "P"}, {"columns", {"insertion"}}, {"rows", {{"y", {0.75}}}}}};
  r["claim"] = {
      {{"says", "Y is best."}, {"metric", "insertion"}, {"kind", "above"}, {"row", "y"}, {"rows", {"*"}}}};
  const Recipe recipe = recipe_from_json("x", r, "x.toml");
  const std::string section = section_markdown(recipe, three_rows());
  EXPECT_THAT(section, HasSubstr("| b | y | 0.3000 ± 0.0100<br>*0.7500* | 3 |"));
  EXPECT_THAT(section, HasSubstr("| b | x | 0.2000 ± 0.0100 | 3 |"));
  EXPECT_THAT(section, HasSubstr("- Y is best. **Agrees** (b: "));
  EXPECT_THAT(outcome_csv(recipe, three_rows()), HasSubstr("b,predicted,y,insertion,0.3"));
}

}  // namespace
}  // namespace aha
