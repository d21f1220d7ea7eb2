#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/data/dataset.h"
#include "aha/data/prefetch.h"
#include "aha/image/png.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using checks::fresh_folder;
using checks::message_of;
using testing::HasSubstr;

Image colored(uint8_t value) {
  Image image(4, 3);
  std::fill(image.rgb.begin(), image.rgb.end(), value);
  return image;
}

TEST(Dataset, FolderClassesAreTheSortedSubFolders) {
  const std::string folder = fresh_folder("data_folder");
  for (const char* name : {"zebra", "ant"}) make_directories(folder + "/" + name);
  write_png(folder + "/zebra/1.png", colored(10));
  write_png(folder + "/ant/2.PNG", colored(20));
  write_file_atomically(folder + "/ant/notes.txt", "no image");
  const auto data = open_dataset("folder:" + folder);
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->class_names(), (std::vector<std::string>{"ant", "zebra"}));
  EXPECT_EQ(data->label(0), 0);
  EXPECT_EQ(data->image(0).rgb[0], 20);
  EXPECT_EQ(data->label(1), 1);
}

TEST(Dataset, ImageNetLabelsAreThoseOfTheWordNetIdsWhicheverFoldersAreThere) {
  const std::string folder = fresh_folder("data_imagenet");
  for (const char* name : {"n02106662", "n01443537", "n15075141"}) {
    make_directories(folder + "/val/" + name);
    write_png(folder + "/val/" + name + "/1.png", colored(10));
  }
  const auto data = open_dataset("imagenet:" + folder);
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(data->label(0), 1);
  EXPECT_EQ(data->label(1), 235);
  EXPECT_EQ(data->label(2), 999);
  ASSERT_EQ(data->class_names().size(), 1000u);
  EXPECT_EQ(data->class_names()[1], "goldfish");
  make_directories(folder + "/val/cats");
  EXPECT_THAT(message_of([&] { open_dataset("imagenet:" + folder + ":val"); }),
              HasSubstr("found 'cats'; folder:" + folder + "/val takes any names"));
}

TEST(Dataset, ListPathsAreRelativeToTheFileAndHeaderIsSkipped) {
  const std::string folder = fresh_folder("data_list");
  write_png(folder + "/a.png", colored(1));
  write_file_atomically(folder + "/l.csv", "path,label\r\na.png,7\r\n");
  const auto data = open_dataset("list:" + folder + "/l.csv");
  ASSERT_EQ(data->size(), 1);
  EXPECT_EQ(data->label(0), 7);
  EXPECT_EQ(data->image(0).width, 4);
  write_file_atomically(folder + "/bad.csv", "a.png,7\na.png;7\n");
  EXPECT_THAT(message_of([&] { open_dataset("list:" + folder + "/bad.csv"); }),
              HasSubstr("bad.csv:2: expected path,label"));
}

TEST(Dataset, AListMayHaveMasksAndBoxes) {
  const std::string folder = fresh_folder("data_annotated");
  Image mask = colored(0), trimap = colored(2);
  mask.row(1)[3 * 2] = 9;
  for (int c = 0; c < 3; ++c) trimap.row(0)[c] = 1, trimap.row(0)[3 + c] = 3;
  write_png(folder + "/mask.png", mask);
  write_png(folder + "/trimap.png", trimap);
  write_file_atomically(folder + "/masks.csv",
                        "path,label,mask\na,b.png,7,mask.png\nc.png,3,trimap.png\nd.png,1,\n");
  const auto masks = open_dataset("list:" + folder + "/masks.csv");
  ASSERT_EQ(masks->size(), 3);
  EXPECT_EQ(masks->id(0), folder + "/a,b.png");
  EXPECT_EQ(masks->label(0), 7);
  EXPECT_TRUE(masks->annotated());
  EXPECT_EQ(masks->annotation(0).mask.rgb, mask.rgb);
  Image object = colored(0);
  for (int c = 0; c < 6; ++c) object.row(0)[c] = 1;
  EXPECT_EQ(masks->annotation(1).mask.rgb, object.rgb);
  EXPECT_EQ(masks->annotation(2).mask.width, 0);

  write_file_atomically(folder + "/boxes.csv",
                        "path,x0,y0,x1,y1\na.png,0,1,2.5,3\nb.png,,,,\na.png,1,1,4,4\n");
  const auto boxes = open_dataset("list:" + folder + "/boxes.csv");
  ASSERT_EQ(boxes->size(), 2);
  EXPECT_EQ(boxes->label(0), -1);
  EXPECT_EQ(boxes->annotation(0).boxes, (std::vector<Box>{{0, 1, 2.5, 3}, {1, 1, 4, 4}}));
  EXPECT_TRUE(boxes->annotation(1).boxes.empty());
  const auto second = slice(open_dataset("list:" + folder + "/masks.csv"), {.skip = 1});
  EXPECT_TRUE(second->annotated());
  EXPECT_EQ(second->annotation(0).mask.rgb, object.rgb);
}

TEST(Dataset, RealListsOpenAsTheyAre) {
  const std::string pets = checks::shared_file("pets/pets.csv"),
                    boxes = checks::shared_file("imagenet/check_boxes.csv");
  if (!std::filesystem::exists(pets)) GTEST_SKIP() << pets << " is not here";
  const auto masked = open_dataset("list:" + pets);
  const Image photo = masked->image(0), mask = masked->annotation(0).mask;
  EXPECT_EQ(masked->label(0), 161);
  EXPECT_EQ(mask.width, photo.width);
  const auto object = std::count(mask.rgb.begin(), mask.rgb.end(), 1);
  EXPECT_GT(object, 0);
  EXPECT_LT(object, std::ssize(mask.rgb));
  const auto boxed = open_dataset("list:" + boxes);
  EXPECT_EQ(boxed->size(), 997);  // 1632 boxes
  EXPECT_EQ(boxed->annotation(0).boxes, (std::vector<Box>{{70.5, 157.7, 196.7, 219.8}}));
}

TEST(Dataset, AListWithWrongColumnsIsRefused) {
  const std::string folder = fresh_folder("data_columns");
  const auto refusal = [&](const std::string& text) {
    write_file_atomically(folder + "/l.csv", text);
    return message_of([&] { open_dataset("list:" + folder + "/l.csv"); });
  };
  EXPECT_THAT(refusal("path,lable\na.png,1\n"), HasSubstr("column 'lable'; available: path, label, mask"));
  EXPECT_THAT(refusal("path,x0,y0,x1\na.png,1,2,3\n"), HasSubstr("expected all of the columns x0,y0,x1,y1"));
  EXPECT_THAT(refusal("path,mask,mask\na.png,1,2\n"), HasSubstr("found mask twice"));
  EXPECT_THAT(refusal("path,x0,y0,x1,y1\na.png,5,0,5,3\n"), HasSubstr("l.csv:2: expected path,x0,y0,x1,y1"));
  EXPECT_THAT(refusal("path,x0,y0,x1,y1\na.png,5,0,nan,3\n"),
              HasSubstr("l.csv:2: expected path,x0,y0,x1,y1"));
  EXPECT_THAT(refusal("path,label,mask\na.png,,m.png\n"), HasSubstr("l.csv:2: expected path,label,mask"));
  EXPECT_THAT(refusal("path,label,x0,y0,x1,y1\na.png,1,0,0,2,2\na.png,2,0,0,2,2\n"),
              HasSubstr("l.csv:3: expected the label"));
}

TEST(Dataset, SliceTakesEveryNthAndRefusesWhatIsNotThere) {
  const std::string folder = fresh_folder("data_slice");
  std::string list;
  for (int i = 0; i < 5; ++i) list += "x" + std::to_string(i) + ".png," + std::to_string(i) + "\n";
  write_file_atomically(folder + "/l.csv", list);
  const auto labels_of = [&](const SliceOptions& options) {
    const auto part = slice(open_dataset("list:" + folder + "/l.csv"), options);
    std::vector<int> labels;
    for (int64_t i = 0; i < part->size(); ++i) labels.push_back(part->label(i));
    return labels;
  };
  EXPECT_EQ(labels_of({}), (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(labels_of({.skip = 2, .limit = 2}), (std::vector{2, 3}));
  EXPECT_EQ(labels_of({.every = 2}), (std::vector{0, 2, 4}));
  EXPECT_EQ(labels_of({.skip = 1, .every = 2}), (std::vector{1, 3}));
  EXPECT_EQ(labels_of({.every = 2, .limit = 2}), (std::vector{0, 2}));
  EXPECT_EQ(labels_of({.every = 100}), (std::vector{0}));
  EXPECT_THAT(message_of([&] { labels_of({.skip = 5, .limit = 1}); }), HasSubstr("has 5 examples"));
  EXPECT_THAT(message_of([&] { labels_of({.every = 0}); }), HasSubstr("--every 0"));
}

TEST(Dataset, UnknownKindsAreNamedWithWhatThereIs) {
  EXPECT_THAT(message_of([] { open_dataset("lst:a.csv"); }), HasSubstr("list:FILE.csv"));
}

TEST(Prefetch, HandsOutInOrderAndNeverRunsFurtherAheadThanAsked) {
  std::atomic<int64_t> made{0};
  int64_t taken = 0;
  Prefetch<int64_t> source(200, 3, 5, [&](int64_t i) {
    ++made;
    return i * i;
  });
  while (const auto value = source.next()) {
    EXPECT_EQ(*value, taken * taken);
    ++taken;
    EXPECT_LE(made, taken + 5);
  }
  EXPECT_EQ(taken, 200);
}

TEST(Prefetch, AnExceptionComesAtItsPlace) {
  Prefetch<int> source(10, 2, 4, [](int64_t i) -> int {
    if (i == 3) throw input_error("image {}", i);
    return 1;
  });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(source.next());
  EXPECT_THAT(message_of([&] { source.next(); }), "image 3");
}

}  // namespace
}  // namespace aha
