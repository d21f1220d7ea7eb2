#include "aha/app/chosen_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/imagenet_classes.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using checks::message_of;
using ::testing::HasSubstr;
using ::testing::Not;

ClassifierInfo imagenet_target() {
  ClassifierInfo info;
  info.name = "some network";
  info.classes = 1000;
  info.class_names = imagenet_class_names();
  return info;
}

TEST(ChosenClass, IsToldByIndexNameWordNetIdOrUniqueBeginning) {
  const auto target = imagenet_target();
  EXPECT_EQ(class_from_text("207", target), 207);
  EXPECT_EQ(class_from_text("Golden Retriever", target), 207);
  EXPECT_EQ(class_from_text("n02099601", target), 207);
  EXPECT_EQ(class_from_text("golden r", target), 207);
  EXPECT_THAT(message_of([&] { class_from_text("1000", target); }), HasSubstr("expected 0..999"));
}

TEST(ChosenClass, AWordOfSeveralNamesListsThem) {
  const auto target = imagenet_target();
  const std::string said = message_of([&] { class_from_text("retriever", target); });
  EXPECT_THAT(said, HasSubstr("207 golden retriever"));
  EXPECT_THAT(said, HasSubstr("208 Labrador retriever"));
  EXPECT_THAT(said, Not(HasSubstr("tench")));
  EXPECT_THAT(message_of([&] { class_from_text("dog", target); }), HasSubstr("that contain it"))
      << "one name begins with it, but others have it as a word";
  ClassifierInfo twice = target;
  twice.class_names[3] = twice.class_names[4];
  EXPECT_THAT(message_of([&] { class_from_text(twice.class_names[4], twice); }), HasSubstr("2 of that name"));
  EXPECT_THAT(message_of([&] { class_from_text("goldfihs", target); }), HasSubstr("did you mean 'goldfish'"));
}

TEST(ChosenClass, OnlyAFullNameNamesAFolder) {
  const auto target = imagenet_target();
  EXPECT_EQ(class_named("goldfish", target), 1);
  EXPECT_EQ(class_named("n01443537", target), 1);
  EXPECT_FALSE(class_named("goldfis", target));
  ClassifierInfo others = target;
  others.class_names = {"ant", "bee"};
  others.classes = 2;
  EXPECT_FALSE(class_named("n01443537", others)) << "its classes are not ImageNet's";
}

}  // namespace
}  // namespace aha
