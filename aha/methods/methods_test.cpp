// Every entry of the catalog is asked the same questions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/methods/catalog.h"
#include "aha/methods/patch_maps.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_explainer.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

using checks::Counted;
using checks::LinearTarget;
using checks::tiny_explainer;
using ::testing::HasSubstr;

const std::vector<std::string> kNames = {"a.png", "photos/b.png", "photos/c.png"};

// Maps for the three images below.
std::string folder_of_maps() {
  const std::string folder = checks::fresh_folder("methods_test_maps");
  for (const float image : {1.f, 2.f, 3.f}) {
    const std::vector<float> values = {image, 2, 5, 1, 7, 3};
    const std::string stem(1, static_cast<char>('a' + static_cast<int>(image) - 1));
    write_npy(folder + "/" + stem + ".npy", {2, 3}, values);
  }
  return folder;
}

// Options that make a method cheap; its default where none is needed.
std::string cheap(const std::string& name) {
  if (name == "maps") {
    static const std::string folder = folder_of_maps();
    return "maps:" + folder;
  }
  if (name == "rise") return "rise:masks=40";
  if (name == "tis") return "tis:masks=20";
  if (name == "smoothgrad") return "smoothgrad:samples=3";
  if (name == "ig") return "ig:steps=4";
  if (name == "optimized") return "optimized:steps=2:S=2";
  if (name == "greedy") return "greedy:grid=3:window=3";
  if (name == "trans-att" || name == "bi-att") return name + ":steps=3";
  return name;
}

bool is_random(const std::string& name) {
  return name == "random" || name == "blurred-random" || name == "rise" || name == "tis" ||
         name == "smoothgrad" || name == "vit-cx" || name == "optimized";
}

struct Asked {
  Tensor pixels, classes;
  std::vector<uint64_t> streams;
  std::vector<std::string> names = kNames;
};

Asked three_images(int size) {
  auto pixels = torch::empty({3, 3, size, size});
  checks::fill_with_wave(pixels, 5, 0.5);
  pixels += 0.5;
  return {pixels, torch::tensor({0, 3, 1}, torch::kInt64), image_streams(pixels)};
}

Tensor maps_of(Method& method, const Asked& asked, uint64_t seed = 0) {
  Context context;
  context.seed = seed;
  method.name_images(asked.names, asked.streams);
  return method.attribute(asked.pixels, asked.classes, asked.streams, context).maps;
}

// Chance must show where it plays a part: the mean of equal gradients does not know it.
template <class Target>
void ask_all(Counted<Target>& target, bool equal_gradients = false) {
  const int size = target.info().input.size;
  const Asked asked = three_images(size);
  for (const auto& record : method_catalog()) {
    SCOPED_TRACE(record.name + " on " + target.info().name);
    if (!record.fits({target})) {
      EXPECT_THROW(make_method(record.name, {target}), Error);
      continue;
    }
    const auto method = make_method(cheap(record.name), {target});
    target.evaluations = 0;
    method->name_images(asked.names, asked.streams);
    target.parts = 0;
    const auto made = method->attribute(asked.pixels, asked.classes, asked.streams, Context());
    const auto& maps = made.maps;
    ASSERT_EQ(made.made.size(), 3u);
    double forwards = 0;
    for (const auto& one : made.made) forwards += one.passes.forwards;
    EXPECT_NEAR(static_cast<double>(target.evaluations) + target.parts, forwards, 1e-9)
        << "the passes said are those done";
    ASSERT_EQ(maps.sizes(), (std::vector<int64_t>{3, size, size}));
    EXPECT_EQ(maps.dtype(), torch::kFloat32);
    EXPECT_FALSE(maps.requires_grad());
    EXPECT_TRUE(maps.isfinite().all().template item<bool>());
    EXPECT_TRUE(torch::equal(maps, maps_of(*method, asked)));
    EXPECT_EQ(torch::equal(maps, maps_of(*method, asked, 1)),
              !is_random(record.name) || (equal_gradients && record.name == "smoothgrad"));
    for (int64_t b = 0; b < 3; ++b) {
      const Asked one{asked.pixels.slice(0, b, b + 1),
                      asked.classes.slice(0, b, b + 1),
                      {asked.streams[b]},
                      {asked.names[b]}};
      EXPECT_TRUE(torch::equal(maps_of(*method, one)[0], maps[b])) << "image " << b << " alone";
    }
    Asked others = asked;
    others.classes = (asked.classes + 1).remainder(target.info().classes);
    EXPECT_EQ(torch::equal(maps, maps_of(*method, others)), !record.reads_class)
        << "as its record says (reads_class)";
    const auto blurred = make_method(cheap(record.name) + ":blur=1.5", {target});
    EXPECT_TRUE(torch::allclose(maps_of(*blurred, asked), blurred_maps(maps, 1.5)));
    const auto inverted = make_method("inverted:" + cheap(record.name) + ":blur=1.5", {target});
    EXPECT_TRUE(torch::equal(maps_of(*inverted, asked), -maps_of(*blurred, asked)));
  }
}

TEST(Catalog, EveryMethodBehavesOnATransformer) {
  Counted<VitClassifier> target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  ask_all(target);
}

TEST(Catalog, EveryMethodBehavesOnAConvNet) {
  Counted<ConvNextClassifier> target(checks::tiny_convnext(), checks::plain_info("tiny_convnext", 16));
  ask_all(target);
}

TEST(Catalog, EveryMethodBehavesOnAClosedBox) {
  Counted<LinearTarget> target;
  ask_all(target, true);
}

// The forms that the catalog's defaults leave out.
TEST(Catalog, OtherFormsSayTheirPassesAndDoNotDependOnTheBatch) {
  Counted<VitClassifier> target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  const Asked asked = three_images(16);
  for (const std::string spec :
       {"ig:space=attention:steps=5", "ig:space=attention:steps=3:rule=gauss-legendre:baseline=black",
        "trans-att:variant=official:start=1:steps=3", "bi-att:variant=tokens:start=1:steps=3",
        "bi-att:variant=heads:start=3:steps=3", "chefer:relu=heads", "legrad:pool=cls:layers=0",
        "rollout:start=2", "gradcam:form=pooled", "transformer-attribution:start=1:rows=plain"}) {
    SCOPED_TRACE(spec);
    const auto method = make_method(spec, {target});
    target.evaluations = 0;
    const auto made = method->attribute(asked.pixels, asked.classes, asked.streams, Context());
    EXPECT_EQ(target.evaluations, static_cast<int64_t>(3 * made.made[0].passes.forwards));
    for (int64_t b = 0; b < 3; ++b) {
      const Asked one{asked.pixels.slice(0, b, b + 1),
                      asked.classes.slice(0, b, b + 1),
                      {asked.streams[b]},
                      {asked.names[b]}};
      EXPECT_TRUE(torch::equal(maps_of(*method, one)[0], made.maps[b]));
    }
  }
}

TEST(Catalog, AStartBeyondTheBlocksIsRefused) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  for (const std::string spec :
       {"rollout:start=3", "trans-att:start=3", "bi-att:start=4", "transformer-attribution:start=3"})
    EXPECT_THAT(checks::message_of([&] { make_method(spec, {target}); }), HasSubstr("expected start in"));
}

TEST(Catalog, LinearTargetsAreExplainedExactly) {
  LinearTarget target;
  const Asked asked = three_images(8);
  const auto rows = target.weights.index_select(0, asked.classes);  // (B, 3, H, W)
  const auto slope = rows.abs().amax(1);
  EXPECT_TRUE(torch::allclose(maps_of(*make_method("gradient", {target}), asked), slope, 1e-5, 1e-6));
  EXPECT_TRUE(
      torch::allclose(maps_of(*make_method("smoothgrad:samples=5", {target}), asked), slope, 1e-5, 1e-6));
  const auto x = normalized(asked.pixels, target.info().input);
  EXPECT_TRUE(torch::allclose(maps_of(*make_method("ig:steps=3:signed=true", {target}), asked),
                              (rows * x).sum(1), 1e-4, 1e-5));
  // Completeness: the evidence sums to the logit's distance from the baseline.
  const auto black = normalized(torch::zeros_like(asked.pixels), target.info().input);
  const auto evidence =
      maps_of(*make_method("ig:steps=3:signed=true:baseline=black", {target}), asked).sum({1, 2});
  EXPECT_TRUE(torch::allclose(evidence, (rows * (x - black)).sum({1, 2, 3}), 1e-4, 1e-3));
}

TEST(Catalog, RiseFindsThePlantedPixels) {
  LinearTarget target(8, 2);
  target.weights.zero_();
  target.weights[0].slice(1, 4, 6).slice(2, 2, 4).fill_(1);  // class 0 is the brightness of four pixels
  const Asked one{torch::ones({1, 3, 8, 8}), torch::zeros({1}, torch::kInt64), {5}};
  const auto map = maps_of(*make_method("rise:masks=1000:cells=4", {target}), one)[0];
  const int64_t best = map.argmax().item<int64_t>(), y = best / 8, x = best % 8;
  EXPECT_TRUE(y >= 3 && y <= 6 && x >= 1 && x <= 4)
      << "found (" << y << ", " << x << ")";  // within a cell's half
}

TEST(Catalog, RefusalsSayWhatIsMissingAndWhatFits) {
  LinearTarget target;
  const auto message = [&](const std::string& spec) {
    return checks::message_of([&] { make_method(spec, {target}); });
  };
  EXPECT_THAT(message("rollout"), HasSubstr("needs attention"));
  EXPECT_THAT(message("rollout"), HasSubstr("fits vision transformers"));
  EXPECT_THAT(message("rollout"), HasSubstr("smoothgrad"));
  EXPECT_THAT(message("scorecam"), HasSubstr("fits ConvNets"));
  EXPECT_THAT(message("inverted:rollout"), HasSubstr("fits vision transformers"));
  EXPECT_THAT(message("inverted"), HasSubstr("inverted:METHOD"));
  EXPECT_THAT(message("inverted:gradcm"), HasSubstr("gradcam"));
  EXPECT_THAT(message("gradcm"), HasSubstr("gradcam"));
  EXPECT_THAT(message("ig:stps=3"), HasSubstr("stps"));
  EXPECT_THAT(message("ig:steps=-3"), HasSubstr("steps"));
  EXPECT_THAT(message("ig:space=attention"), HasSubstr("needs attention"));
}

TEST(Catalog, ABlurredOrInvertedMethodSharesTheWorkOfItsPlainOne) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("vit", 16));
  const Asked asked = three_images(16);
  for (const auto& record : method_catalog()) {
    if (!record.fits({target})) continue;
    SCOPED_TRACE(record.name);
    const auto plain = make_method(cheap(record.name), {target});
    const bool options = cheap(record.name) != record.name;
    const auto blurred = make_method(cheap(record.name) + ":blur=1.5", {target}),
               twice = make_method(cheap(record.name) + ":blur=3", {target});
    EXPECT_TRUE(blurred->shares_work_with(*plain));
    EXPECT_FALSE(plain->shares_work_with(*blurred));
    EXPECT_FALSE(plain->shares_work_with(*plain));
    EXPECT_FALSE(blurred->shares_work_with(*twice));
    if (options && record.argument.empty()) {
      EXPECT_FALSE(blurred->shares_work_with(*make_method(record.name, {target}))) << "other options";
    }
    const auto inverted = make_method("inverted:" + cheap(record.name) + ":blur=1.5", {target});
    EXPECT_TRUE(inverted->shares_work_with(*blurred));
    EXPECT_TRUE(inverted->shares_work_with(*plain));
    Method* const others[] = {plain.get(), blurred.get()};
    inverted->name_images(asked.names, asked.streams);
    const auto all =
        inverted->attribute_shared(others, asked.pixels, asked.classes, asked.streams, Context());
    ASSERT_EQ(all.size(), 3u);
    EXPECT_TRUE(torch::equal(all[0].maps, maps_of(*inverted, asked)));
    EXPECT_TRUE(torch::equal(all[1].maps, maps_of(*plain, asked)));
    EXPECT_TRUE(torch::equal(all[2].maps, maps_of(*blurred, asked)));
    EXPECT_EQ(all[0].made[0].passes.forwards, all[1].made[0].passes.forwards);
  }
}

TEST(Learned, ALongerRefinementSharesTheWorkOfShorterOnesWithTheSameOptions) {
  ConvNextClassifier target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  LoadedExplainer loaded = tiny_explainer(target);
  const auto made = [&](const std::string& spec) { return make_method(spec, {target, &loaded}); };
  const auto none = made("aha:S=2"), one = made("aha:T=1:S=2:guard=off"), two = made("aha:T=2:S=2:guard=off"),
             blurred = made("aha:T=1:blur=1:S=2:guard=off"), guarded = made("aha:T=1:S=2:lr=3"),
             longer = made("aha:T=2:S=2:lr=3");
  EXPECT_TRUE(two->shares_work_with(*one));
  EXPECT_TRUE(two->shares_work_with(*none));
  EXPECT_FALSE(one->shares_work_with(*two));
  EXPECT_FALSE(two->shares_work_with(*blurred));
  EXPECT_TRUE(blurred->shares_work_with(*none)) << "its plain one does";
  EXPECT_FALSE(two->shares_work_with(*made("aha:T=1:S=3:guard=off")));
  EXPECT_FALSE(two->shares_work_with(*made("aha:T=1:S=2:lr=0.5:guard=off")));
  EXPECT_FALSE(two->shares_work_with(*made("aha:T=1:S=2"))) << "which has a guard";
  EXPECT_FALSE(made("aha:T=2:S=2:budget=5")->shares_work_with(*one)) << "the time may end before";
  const Asked asked = three_images(16);
  const auto expect_shared = [&](Method& leader, const std::vector<Method*>& others) {
    const auto all = leader.attribute_shared(others, asked.pixels, asked.classes, asked.streams, Context());
    ASSERT_EQ(all.size(), others.size() + 1);
    EXPECT_TRUE(torch::equal(all[0].maps, maps_of(leader, asked)));
    for (size_t i = 0; i < others.size(); ++i)
      EXPECT_TRUE(torch::equal(all[i + 1].maps, maps_of(*others[i], asked))) << i;
  };
  EXPECT_FALSE(torch::equal(maps_of(*two, asked), maps_of(*none, asked)));
  expect_shared(*longer, {guarded.get(), none.get()});
  expect_shared(*two, {one.get(), none.get()});
  expect_shared(*blurred, {none.get(), one.get()});
}

TEST(Learned, SaysTheStepsDoneTheLossAndThePassesOfEachMap) {
  Counted<ConvNextClassifier> target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  LoadedExplainer loaded = tiny_explainer(target);
  const Asked asked = three_images(16);
  const auto made = [&](const char* encoder, const std::string& spec) {
    loaded.card.encoder.emplace();
    loaded.card.encoder->architecture = encoder;
    return make_method(spec, {target, &loaded})
        ->attribute(asked.pixels, asked.classes, asked.streams, Context())
        .made;
  };
  EXPECT_EQ(made("target", "aha")[2].passes.forwards, 1);
  EXPECT_EQ(made("another", "aha")[2].passes.forwards, 0);
  EXPECT_EQ(made("target", "aha")[2].passes.backwards, 0);
  EXPECT_EQ(made("target", "aha")[2].steps, 0);
  EXPECT_TRUE(std::isnan(made("target", "aha")[2].loss));
  // T steps, 2 directions, S perturbed images, 3 references.
  const auto refined = made("target", "aha:T=2:S=5:grids=1:guard=off");
  ASSERT_EQ(refined.size(), 3u);
  for (const auto& one : refined) {
    EXPECT_EQ(one.steps, 2);
    EXPECT_EQ(one.passes.forwards, 2 * 2 * 5 * 3 + 1);
    EXPECT_EQ(one.passes.backwards, 2 * 2 * 5 * 3);
    EXPECT_TRUE(std::isfinite(one.loss));
  }
  EXPECT_NE(refined[0].loss, refined[1].loss);
  // The guard looks at two maps: 2 directions, 4 perturbed images, 3 references each. Questions are those
  // that the target really gets.
  target.evaluations = 0;
  const auto guarded = made("target", "aha:T=2:S=5:grids=1");
  double forwards = 0;
  for (const auto& one : guarded) {
    EXPECT_EQ(one.passes.forwards, 2 * 2 * 5 * 3 + 2 * 2 * 4 * 3 + 1);
    EXPECT_EQ(one.passes.backwards, 2 * 2 * 5 * 3);
    EXPECT_EQ(one.steps, 2);
    forwards += one.passes.forwards;
  }
  EXPECT_EQ(target.evaluations, forwards);
  // A snapshot on the way says what the shorter refinement says by itself.
  const auto longer = make_method("aha:T=2:S=5:grids=1:guard=off", {target, &loaded}),
             shorter = make_method("aha:T=1:S=5:grids=1:guard=off", {target, &loaded});
  Method* const others[] = {shorter.get()};
  const auto shared = longer->attribute_shared(others, asked.pixels, asked.classes, asked.streams, Context());
  const auto alone = shorter->attribute(asked.pixels, asked.classes, asked.streams, Context());
  for (size_t b = 0; b < 3; ++b) {
    EXPECT_EQ(shared[1].made[b].steps, 1);
    EXPECT_EQ(shared[1].made[b].loss, alone.made[b].loss);
    EXPECT_EQ(shared[1].made[b].passes.forwards, alone.made[b].passes.forwards);
    EXPECT_NE(shared[1].made[b].loss, shared[0].made[b].loss);
  }
}

TEST(Learned, ABudgetAloneRefinesAsFarAsItAllows) {
  ConvNextClassifier target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  LoadedExplainer loaded = tiny_explainer(target);
  const Asked asked = three_images(16);
  const auto method = make_method("aha:S=2:budget=150", {target, &loaded});
  EXPECT_TRUE(method->timed());
  const auto made = method
                        ->attribute(asked.pixels.slice(0, 0, 1), asked.classes.slice(0, 0, 1),
                                    {{asked.streams[0]}}, Context())
                        .made;
  EXPECT_GT(made[0].steps, 0);
  EXPECT_LT(made[0].steps, 100000);
  EXPECT_EQ(made[0].passes.backwards, made[0].steps * 2 * 2 * 3) << "the passes are those of the steps done";
  EXPECT_FALSE(make_method("aha:S=2:T=1", {target, &loaded})->timed());
}

TEST(Catalog, OptionsBesideTheSpecAreSetAndContradictionsRefused) {
  LinearTarget target;
  EXPECT_EQ(make_method("ig", {target}, {{"steps", 7}})->identity(),
            make_method("ig:steps=7", {target})->identity());
  EXPECT_EQ(make_method("ig:signed=true", {target}, {{"steps", 7}})->identity(),
            make_method("ig:steps=7:signed=true", {target})->identity());
  EXPECT_THAT(checks::message_of([&] {
                make_method("ig:steps=3", {target}, {{"steps", 7}});
              }),
              HasSubstr("steps once"));
  EXPECT_THAT(checks::message_of([&] { make_method("ig:steps=3:steps=5", {target}); }),
              HasSubstr("steps once"));
  EXPECT_THAT(checks::message_of([&] { make_method("ig", {target}, {{"stps", 7}}); }), HasSubstr("stps"));
}

TEST(MethodLabels, HaveNoFoldersUnlessTwoWouldBeTheSame) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(method_labels({"ig:steps=3", "maps:/home/me/theirs", "inverted:maps:a/b/:blur=2", "maps:c"}),
            (Strings{"ig:steps=3", "maps:theirs", "inverted:maps:b:blur=2", "maps:c"}));
  EXPECT_EQ(method_labels({"maps:a/x", "maps:b/x"}), (Strings{"maps:a/x", "maps:b/x"}));
}

TEST(ImageStream, DependsOnThePixelsAlone) {
  const Asked asked = three_images(8);
  EXPECT_EQ(image_stream(asked.pixels[1].clone()), asked.streams[1]);
  EXPECT_NE(asked.streams[0], asked.streams[1]);
  Tensor other = asked.pixels[1].clone();
  other[2][7][7] += 1.f / 255;
  EXPECT_NE(image_stream(other), asked.streams[1]);
}

}  // namespace
}  // namespace aha
