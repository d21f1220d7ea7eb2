// Metrics that explain again and the remarks on learned explainers, through a whole evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/evaluate/audit_remarks.h"
#include "aha/evaluate/evaluate.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_explainer.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class Ripples : public Dataset {
 public:
  std::string name() const override { return "ripples"; }
  int64_t size() const override { return 3; }
  int label(int64_t index) const override { return static_cast<int>(index); }
  std::string id(int64_t index) const override { return "ripple/" + std::to_string(index); }
  Image image(int64_t index) const override {
    Image image(16, 16);
    for (size_t i = 0; i < image.rgb.size(); ++i)
      image.rgb[i] = static_cast<uint8_t>(
          127 + 120 * std::sin(0.31 * static_cast<double>(i) + 1.1 * static_cast<double>(index)));
    return image;
  }
};

// An explainer that looks at the target's own stages, the same one on features of another network, and
// methods that do and do not look at the target.
TEST(Audit, RandomizationChangesExactlyTheMapsThatLookAtTheTarget) {
  ConvNextClassifier target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  ConvNextClassifier other(checks::tiny_convnext(), checks::plain_info("other", 16));
  EvaluateOptions options;
  options.methods = {"gradient", "sobel", "aha"};
  options.metrics = {"parameter-randomization:stages=2", "randomization-unchanged", "class-sensitivity",
                     "sensitivity-max:samples=2",        "random-class-leakage",    "infidelity:samples=4"};
  options.timing_runs = options.images = 0;
  const auto unchanged = [&](Explainer& explainer, const std::string& folder) {
    LoadedExplainer loaded = checks::tiny_explainer(target);
    loaded.explainer = explainer.on_target(target);
    const auto found = evaluate({target, &loaded}, Ripples(), options, checks::fresh_path(folder), {});
    for (const auto& row : found.summary.rows)
      for (const auto& metric : found.summary.metrics) {
        EXPECT_EQ(row.metrics.at(metric.name).images, 3) << row.method << " " << metric.name;
        for (const double value : row.metrics.at(metric.name).per_image)
          EXPECT_TRUE(std::isfinite(value)) << row.method << " " << metric.name;
      }
    std::map<std::string, double> out;
    for (const auto& row : found.summary.rows) {
      out[row.method] = row.metrics.at("randomization-unchanged").value.mean;
      EXPECT_EQ(row.metrics.at("parameter-randomization").value.mean > 1 - 1e-9, out[row.method] == 1);
    }
    const auto void_test = HasSubstr("parameter-randomization of aha is 1");
    if (out.at("aha") == 1)
      EXPECT_THAT(found.summary.warnings, Contains(void_test));
    else
      EXPECT_THAT(found.summary.warnings, Not(Contains(void_test)));
    return out;
  };
  using Shares = std::map<std::string, double>;
  LoadedExplainer own = checks::tiny_explainer(target);
  EXPECT_EQ(unchanged(*own.explainer, "audit_own"), (Shares{{"aha", 0}, {"gradient", 0}, {"sobel", 1}}));
  EncoderInfo info;
  info.name = info.architecture = "convnext";
  const std::shared_ptr<Classifier> network(std::shared_ptr<void>(), &other);
  Explainer independent(encoder_from_classifier(network, {"stage.0", "stage.1"}, info),
                        own.explainer->decoder()->options);
  independent.decoder()->eval();
  EXPECT_EQ(unchanged(independent, "audit_independent"), (Shares{{"aha", 1}, {"gradient", 0}, {"sobel", 1}}));
}

Summary summary_of(const std::map<std::string, std::vector<double>>& ins_del) {
  Summary s;
  s.explained = {"predicted"};
  MetricRecord record;
  record.name = "ins-del";
  s.metrics = {record};
  for (const auto& [method, values] : ins_del) {
    s.methods.push_back(method);
    MethodSummary& row = s.rows.emplace_back();
    row.method = method, row.explained = "predicted";
    row.metrics["ins-del"].per_image = values;
  }
  return s;
}

TEST(Audit, TellsWhatEachStepOfRefinementGainsAndWhereItLoses) {
  const auto found = audit_remarks(summary_of({{"aha", {0.1, 0.2, 0.3, 0.4}},
                                               {"aha:T=1", {0.2, 0.2, 0.3, 0.5}},
                                               {"aha:T=3", {0.3, 0.1, 0.2, 0.6}},
                                               {"aha:T=3:guard=off", {0.0, 0.1, 0.2, 0.3}},
                                               {"aha:blur=2:T=3", {1, 1, 1, 1}},
                                               {"ig", {0.5, 0.5, 0.5, 0.5}}}));
  EXPECT_EQ(found,
            (std::vector<std::string>{
                "refinement of aha against T = 0, ins-del: T = 1 +0.0500, loses on 0 %; T = 3 +0.0500, "
                "loses on 50 %",
                "refinement of aha:guard=off against T = 0, ins-del: T = 3 -0.1000, loses on 100 %"}));
}

}  // namespace
}  // namespace aha
