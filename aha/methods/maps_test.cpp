// Maps made elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "aha/base/npy.h"
#include "aha/methods/catalog.h"
#include "aha/methods/patch_maps.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MapsFolder : public ::testing::Test {
 protected:
  // A map whose values begin at `first` and rise by 1.
  void write(const std::string& name, std::vector<int64_t> shape, float first) {
    int64_t count = 1;
    for (const auto size : shape) count *= size;
    std::vector<float> values(static_cast<size_t>(count));
    for (auto& value : values) value = first++;
    fs::create_directories((fs::path(folder) / name).parent_path());
    write_npy((fs::path(folder) / name).string(), shape, values);
  }
  Tensor map_of(const std::string& image) {
    const auto method = make_method("maps:" + folder, {target});
    const std::vector<std::string> names = {image};
    const std::vector<uint64_t> streams = {7};
    method->name_images(names, streams);
    return method->attribute(torch::zeros({1, 3, 4, 4}), torch::zeros({1}, torch::kInt64), streams, Context())
        .maps[0];
  }
  std::string message_of(const std::string& image) {
    return checks::message_of([&] { map_of(image); });
  }

  std::string folder = checks::fresh_folder("maps_test");
  checks::LinearTarget target{4};
};

TEST_F(MapsFolder, AreResizedToTheInput) {
  write("same.npy", {4, 4}, 0);
  write("small.npy", {1, 2, 2}, 0);
  write("large.npy", {8, 8}, 0);
  EXPECT_TRUE(torch::equal(map_of("same.jpg"), torch::arange(16.).view({4, 4})));
  EXPECT_TRUE(torch::equal(map_of("small.jpg"), upsampled(torch::arange(4.).view({1, 2, 2}), 4, 4)[0]));
  // A ramp stays a ramp away from the border.
  const auto large = map_of("large.jpg");
  EXPECT_NEAR((large[1][2] - large[1][1]).item<double>(), 2, 1e-5);
  EXPECT_NEAR((large[2][1] - large[1][1]).item<double>(), 16, 1e-4);
}

TEST_F(MapsFolder, AreFoundByTheLongestEndOfTheImagesPath) {
  write("tom.npy", {4, 4}, 0);
  write("cats/tom.npy", {4, 4}, 100);
  write("dogs/rex.map.npy", {4, 4}, 200);
  const auto first = [&](const std::string& image) { return map_of(image)[0][0].item<float>(); };
  EXPECT_EQ(first("photos/cats/tom.jpg"), 100);
  EXPECT_EQ(first("/somewhere/../photos/cats/tom.png"), 100);
  EXPECT_EQ(first("photos/dogs/tom.jpg"), 0);
  EXPECT_EQ(first("dogs/rex.jpg"), 200);
}

TEST_F(MapsFolder, RefusalsSayWhatWasExpectedAndFound) {
  EXPECT_THAT(message_of("a.jpg"), HasSubstr("expected .npy files in"));
  write("flat.npy", {16}, 0);
  write("color.npy", {3, 4, 4}, 0);
  write_npy(folder + "/nan.npy", {2, 2}, std::vector<float>{0, 1, std::nanf(""), 2});
  EXPECT_THAT(message_of("a.jpg"), HasSubstr("a.npy"));
  EXPECT_THAT(message_of("flat.jpg"), HasSubstr("(h, w) or (1, h, w), found (16)"));
  EXPECT_THAT(message_of("color.jpg"), HasSubstr("found (3, 4, 4)"));
  EXPECT_THAT(message_of("nan.jpg"), HasSubstr("found nan in row 1, column 0"));
  const auto made = [&](const std::string& spec) {
    return checks::message_of([&] { make_method(spec, {target}); });
  };
  EXPECT_THAT(made("maps"), HasSubstr("expected maps:FOLDER"));
  EXPECT_THAT(made("maps:" + folder + "/nowhere"), HasSubstr("expected a folder"));
  EXPECT_THAT(made("maps:" + folder + ":blur=x"), HasSubstr("blur"));
}

TEST_F(MapsFolder, DependOnTheContentOfTheirFile) {
  write("a.npy", {4, 4}, 0);
  write("b.npy", {4, 4}, 1);
  const auto depends = [&](const std::string& image) {
    return make_method("inverted:maps:" + folder + ":blur=1", {target})->depends_on(image);
  };
  const auto before = depends("a.jpg");
  EXPECT_NE(before, depends("b.jpg"));
  EXPECT_NE(before, depends("c.jpg"));
  EXPECT_EQ(before, depends("a.jpg"));
  write("a.npy", {4, 4}, 2);
  EXPECT_NE(before, depends("a.jpg"));
  EXPECT_EQ(make_method("gradient", {target})->depends_on("a.jpg"), "");
}

}  // namespace
}  // namespace aha
