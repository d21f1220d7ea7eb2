#include "aha/data/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/data/augment.h"
#include "aha/testing/checks.h"
#include "aha/testing/environment.h"

namespace aha {
namespace {

using checks::fresh_folder;
using checks::message_of;
using testing::HasSubstr;

using checks::Variable;

TEST(Cifar10, SampleIsTheFirst300TestImages) {
  const auto sample = open_dataset("cifar10:sample");
  ASSERT_EQ(sample->size(), 300);
  ASSERT_EQ(sample->class_names().size(), 10u);
  const std::vector<int> known = {3, 8, 8, 0, 6, 6, 1, 6, 3, 1};  // as the data set's test batch begins
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sample->label(i), known[i]);
  EXPECT_EQ(sample->class_names()[sample->label(0)], "cat");
  const Image first = sample->image(0);
  EXPECT_EQ(first.width, 32);
  EXPECT_EQ(first.height, 32);
  EXPECT_EQ(std::vector<int>(first.rgb.begin(), first.rgb.begin() + 3), (std::vector<int>{158, 112, 49}));
}

TEST(Cifar10, WithoutTheSetTheMessageSaysHowToGetIt) {
  const Variable cache("AHA_CACHE", fresh_folder("cifar10_empty"));
  EXPECT_THAT(message_of([] { open_dataset("cifar10:train"); }), HasSubstr("aha get cifar10"));
  EXPECT_THAT(message_of([] { open_dataset("cifar10:tset"); }), HasSubstr("train, test, sample"));
}

TEST(Cifar10, OfficialFilesAreTakenFromAFolderOnce) {
  const Variable cache("AHA_CACHE", fresh_folder("cifar10_cache"));
  const std::string folder = fresh_folder("cifar10_official");
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    std::string bytes(10000 * 3073, '\0');
    for (int i = 0; i < 10000; ++i) bytes[i * 3073] = static_cast<char>(i % 10);
    bytes[1 + 5] = 'r', bytes[1 + 1024 + 5] = 'g', bytes[1 + 2048 + 5] = 'b';  // image 0, pixel 5
    write_file_atomically(folder + "/" + name + ".bin", bytes);
  }
  const Context context;
  EXPECT_FALSE(get_cifar10(folder, context).was_there);
  EXPECT_TRUE(get_cifar10(folder, context).was_there);
  const auto test = open_dataset("cifar10");
  ASSERT_EQ(test->size(), 10000);
  EXPECT_EQ(test->label(17), 7);
  const Image first = test->image(0);
  EXPECT_EQ(std::string(first.rgb.begin() + 15, first.rgb.begin() + 18), "rgb");
  EXPECT_EQ(open_dataset("cifar10:train")->size(), 50000);
}

TEST(Cifar10, AFolderWithoutItIsRefused) {
  const Variable cache("AHA_CACHE", fresh_folder("cifar10_cache2"));
  const std::string folder = fresh_folder("cifar10_nothing");
  EXPECT_THAT(message_of([&] { get_cifar10(folder, Context()); }), HasSubstr("expected data_batch_1.bin"));
  write_file_atomically(folder + "/a.tgz", "not an archive");
  EXPECT_THAT(message_of([&] { get_cifar10(folder + "/a.tgz", Context()); }),
              HasSubstr("expected a gzipped tar archive"));
}

std::vector<float> augmented(const Image& image, const AugmentOptions& options, uint64_t seed, int64_t epoch,
                             int64_t index) {
  std::vector<float> out(image.rgb.size());
  augment(image, options, seed, epoch, index, out);
  return out;
}

Image speckled() {
  Image image(32, 32);
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<uint8_t>(1 + i * 37 % 255);
  return image;
}

TEST(Augment, IsAPureFunctionOfSeedEpochAndIndex) {
  const Image image = speckled();
  AugmentOptions options;
  options.mask_share = 1;
  const auto once = augmented(image, options, 7, 3, 11);
  EXPECT_EQ(once, augmented(image, options, 7, 3, 11));
  EXPECT_NE(once, augmented(image, options, 8, 3, 11));
  EXPECT_NE(once, augmented(image, options, 7, 4, 11));
  EXPECT_NE(once, augmented(image, options, 7, 3, 12));
}

TEST(Augment, NothingAskedNothingChanged) {
  const Image image = speckled();
  std::vector<float> plain(image.rgb.size());
  unchanged(image, plain);
  EXPECT_EQ(augmented(image, {.pad = 0, .flip = false, .mask_share = 0}, 1, 2, 3), plain);
}

TEST(Augment, MasksTheShareThatWasAskedForAndStaysInRange) {
  const Image image = speckled();  // has no black pixel of its own
  const AugmentOptions options{.pad = 0, .flip = false, .mask_share = 0.5};
  std::vector<float> plain(image.rgb.size());
  unchanged(image, plain);
  constexpr int kTrials = 2000;
  int changed = 0, mirrored = 0;
  for (int i = 0; i < kTrials; ++i) {
    const auto out = augmented(image, options, 0, 0, i);
    changed += out != plain;
    for (const float v : out) ASSERT_TRUE(v >= 0 && v <= 1);
    mirrored += augmented(image, {.pad = 0, .flip = true, .mask_share = 0}, 0, 0, i) != plain;
  }
  // Half of the images within 4 deviations; a mask that happens to keep all of a small grid is no change
  // (at most a few percent).
  const double deviation = std::sqrt(kTrials * 0.25);
  EXPECT_NEAR(changed, kTrials * 0.5 * 0.97, 4 * deviation + kTrials * 0.5 * 0.03);
  EXPECT_NEAR(mirrored, kTrials * 0.5, 4 * deviation);
}

TEST(CutMix, TakesTheShareThatWasAskedForFromAnyPartnerAndStaysInside) {
  constexpr int kTrials = 4000, kPartners = 10, kSide = 32;
  const AugmentOptions options{.cutmix_share = 0.5};
  int mixed = 0;
  double area = 0;
  std::vector<int> partners(kPartners);
  for (int i = 0; i < kTrials; ++i) {
    const CutMix cut = draw_cutmix(options, 1, 2, i, kPartners, kSide);
    if (cut.width * cut.height == 0) continue;
    ASSERT_TRUE(cut.x >= 0 && cut.y >= 0 && cut.x + cut.width <= kSide && cut.y + cut.height <= kSide);
    ++mixed;
    ++partners.at(static_cast<size_t>(cut.partner));
    area += static_cast<double>(cut.width * cut.height) / (kSide * kSide);
  }
  // Half of the images within 4 deviations (rectangles that vanish by rounding are one in a thousand);
  // partners alike.
  EXPECT_NEAR(mixed, kTrials * 0.5, 4 * std::sqrt(kTrials * 0.25) + kTrials * 0.001);
  for (const int count : partners) EXPECT_NEAR(count, mixed / 10.0, 5 * std::sqrt(mixed * 0.09));
  // Side s of area s^2 keeps on average s - s^2 / 4 of it within the border: E (s - s^2 / 4)^2 with s^2
  // uniform = 1/2 - 1/5 + 1/48.
  EXPECT_NEAR(area / mixed, 0.5 - 0.2 + 1.0 / 48, 0.02);
  const CutMix none = draw_cutmix({.cutmix_share = 0}, 1, 2, 3, kPartners, kSide);
  EXPECT_EQ(none.width * none.height, 0);
}

}  // namespace
}  // namespace aha
