#include "aha/data/imagenet_seg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <thread>

#include "aha/base/files.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using checks::fresh_folder;
using checks::message_of;
using testing::HasSubstr;

// A file as the benchmark's: value/img -> (3, W, H), value/gt -> cell -> (W, H).
class SegFile {
 public:
  explicit SegFile(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {
    for (const char* group : {"value", "refs"})
      H5Gclose(H5Gcreate2(file_, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  ~SegFile() { H5Fclose(file_); }

  hobj_ref_t write(hid_t type, const std::vector<hsize_t>& shape, const void* values, std::string name = {}) {
    if (name.empty()) name = "refs/" + std::to_string(next_++);
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Sclose(space);
    hobj_ref_t reference;
    H5Rcreate(&reference, file_, name.c_str(), H5R_OBJECT, -1);
    return reference;
  }

 private:
  hid_t file_;
  int next_ = 0;
};

constexpr int kWidth = 5, kHeight = 3;

uint8_t value_at(int c, int x, int y) {
  return static_cast<uint8_t>(100 * c + 10 * x + y);
}

std::string small_file(const std::string& name) {
  const std::string path = fresh_folder(name) + "/seg.mat";
  SegFile file(path);
  std::vector<uint8_t> color, gray, mask;
  for (int c = 0; c < 3; ++c)
    for (int x = 0; x < kWidth; ++x)
      for (int y = 0; y < kHeight; ++y) {
        color.push_back(value_at(c, x, y));
        if (c > 0) continue;
        gray.push_back(value_at(1, x, y));
        mask.push_back(x == 4 && y == 1);
      }
  const hobj_ref_t images[] = {file.write(H5T_STD_U8LE, {3, kWidth, kHeight}, color.data()),
                               file.write(H5T_STD_U8LE, {kWidth, kHeight}, gray.data())};
  const hobj_ref_t plain = file.write(H5T_STD_U8LE, {kWidth, kHeight}, mask.data()),
                   masks[] = {file.write(H5T_STD_REF_OBJ, {1, 1}, &plain),
                              file.write(H5T_STD_REF_OBJ, {1, 1}, &plain)};
  file.write(H5T_STD_REF_OBJ, {2, 1}, images, "value/img");
  file.write(H5T_STD_REF_OBJ, {2, 1}, masks, "value/gt");
  return path;
}

TEST(ImageNetSeg, ReadsImagesAndMasksColumnsFirst) {
  const auto data = open_dataset("imagenet-seg:" + small_file("seg_small"));
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->label(0), -1);
  EXPECT_EQ(data->id(1), "imagenet-seg/1");
  ASSERT_TRUE(data->annotated());
  const Image image = data->image(0), gray = data->image(1), mask = data->annotation(0).mask;
  ASSERT_EQ(image.width, kWidth);
  ASSERT_EQ(image.height, kHeight);
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 3; ++c) {
        EXPECT_EQ(image.row(y)[3 * x + c], value_at(c, x, y));
        EXPECT_EQ(gray.row(y)[3 * x + c], value_at(1, x, y));
        EXPECT_EQ(mask.row(y)[3 * x + c] != 0, x == 4 && y == 1);
      }
}

TEST(ImageNetSeg, ThreadsMayReadAtOnce) {
  const auto data = open_dataset("imagenet-seg:" + small_file("seg_threads"));
  const Image expected = data->image(0);
  std::vector<int> wrong(4);
  std::vector<std::thread> team;
  for (int& mine : wrong)
    team.emplace_back([&data, &expected, &mine] {
      for (int i = 0; i < 200; ++i) mine += data->image(0).rgb != expected.rgb;
    });
  for (auto& one : team) one.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(ImageNetSeg, SaysWhatIsWrongWithAFile) {
  const std::string folder = fresh_folder("seg_bad");
  const auto refusal = [](const std::string& path) {
    return message_of([&] {
      const auto data = open_imagenet_seg(path);
      for (int64_t i = 0; i < data->size(); ++i) {
        data->image(i);
        data->annotation(i);
      }
    });
  };
  EXPECT_THAT(refusal(folder + "/none.mat"), HasSubstr("none.mat"));
  write_file_atomically(folder + "/text.mat", "no HDF5");
  EXPECT_THAT(refusal(folder + "/text.mat"), HasSubstr("text.mat: expected a MATLAB 7.3 file (HDF5)"));
  { SegFile empty(folder + "/empty.mat"); }
  EXPECT_THAT(refusal(folder + "/empty.mat"), HasSubstr("expected references under /value/img"));
  {
    SegFile file(folder + "/types.mat");
    const std::vector<double> numbers(6);
    const hobj_ref_t doubles = file.write(H5T_NATIVE_DOUBLE, {3, 2, 1}, numbers.data());
    file.write(H5T_STD_REF_OBJ, {1, 1}, &doubles, "value/img");
    file.write(H5T_STD_REF_OBJ, {1, 1}, &doubles, "value/gt");
  }
  EXPECT_THAT(refusal(folder + "/types.mat"), HasSubstr("expected image 0 (3, W, H) of bytes"));
  {
    SegFile file(folder + "/numbers.mat");
    const std::vector<uint8_t> bytes(4);
    file.write(H5T_STD_U8LE, {4, 1}, bytes.data(), "value/img");
    file.write(H5T_STD_U8LE, {4, 1}, bytes.data(), "value/gt");
  }
  EXPECT_THAT(refusal(folder + "/numbers.mat"), HasSubstr("expected references under /value/img"));
  // Cut short anywhere.
  const std::string whole = read_file(small_file("seg_whole"));
  for (size_t size = 0; size < whole.size(); size += 97) {
    write_file_atomically(folder + "/cut.mat", whole.substr(0, size));
    EXPECT_FALSE(refusal(folder + "/cut.mat").empty()) << size;
  }
}

}  // namespace
}  // namespace aha
