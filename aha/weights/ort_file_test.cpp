#include "aha/weights/ort_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/files.h"
#include "aha/testing/checks.h"
#include "aha/weights/read_weights.h"
#include "aha/weights/test_files.h"

namespace aha {
namespace {

using checks::message_of;
using test_files::floats;
using test_files::ort_file;
using test_files::OrtPlaces;
using test_files::OrtTensor;
using test_files::u16;
using test_files::u32;
using testing::HasSubstr;

const std::vector<OrtTensor> kOrtTensors = {
    {"model.fc.weight", {2, 3}, 1, floats({1, 2, 3, 4, 5, 6})},
    {"/fc/Concat_output_0", {2}, 7, test_files::le(int64_t{-1}) + test_files::le(int64_t{7})},
    {"scalar", {}, 1, floats({0.5})},
    {"none", {0, 3}, 10, ""},
};

TensorTable table_of(const std::string& content) {
  const auto owner = test_files::shared(content);
  return ort_file_from_bytes(std::as_bytes(std::span(*owner)), owner, "small.ort");
}

std::string refusal(const std::string& content) {
  return message_of([&] { table_of(content); });
}

TEST(OrtFile, HasItsInitializersByName) {
  const TensorTable table = table_of(ort_file(kOrtTensors));
  ASSERT_EQ(table.tensors.size(), 4u);
  EXPECT_EQ(table.at("model.fc.weight").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(floats_from_view(table.at("model.fc.weight")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(table.at("/fc/Concat_output_0").dtype, DType::kI64);
  EXPECT_EQ(floats_from_view(table.at("/fc/Concat_output_0")), (std::vector<float>{-1, 7}));
  EXPECT_TRUE(table.at("scalar").shape.empty());
  EXPECT_EQ(floats_from_view(table.at("scalar")), (std::vector<float>{0.5}));
  EXPECT_EQ(table.at("none").numel(), 0);
}

TEST(OrtFile, IsRecognizedByItsContent) {
  const std::string path = checks::fresh_folder("ort_file") + "/weights.bin";
  write_file_atomically(path, ort_file(kOrtTensors));
  EXPECT_EQ(read_weights(path).tensors.size(), 4u);
  EXPECT_EQ(read_ort_file(path).source, path);
}

TEST(OrtFile, RefusesWhatItCannotRead) {
  const auto with = [](const OrtTensor& tensor) { return ort_file({tensor}); };
  EXPECT_THAT(refusal("short"), HasSubstr("ORTM"));
  EXPECT_THAT(refusal(u32(8) + "ONNX" + std::string(64, '\0')), HasSubstr("ORTM"));
  EXPECT_THAT(refusal(ort_file({kOrtTensors[0], kOrtTensors[0]})), HasSubstr("found it twice"));
  EXPECT_THAT(refusal(with({"", {1}, 1, floats({1})})), HasSubstr("with a name"));
  EXPECT_THAT(refusal(with({std::string(2000, 'n'), {1}, 1, floats({1})})), HasSubstr("found one of 2000"));
  EXPECT_THAT(refusal(with({"text", {1}, 8, "abcd"})), HasSubstr("'text': expected numbers of 1 to 8 bytes"));
  EXPECT_THAT(refusal(with({"w", {3}, 1, floats({1, 2})})), HasSubstr("F32 [3] takes 12 bytes, found 8"));
  EXPECT_THAT(refusal(with({"w", {1}, 1, floats({1, 2})})), HasSubstr("takes 4 bytes, found 8"));
  EXPECT_THAT(refusal(with({"w", {-1}, 1, floats({1})})), HasSubstr("found a side of -1"));
  EXPECT_THAT(refusal(with({"w", {int64_t{1} << 40, int64_t{1} << 40}, 1, ""})),
              HasSubstr("a shape that can be"));
  EXPECT_THAT(refusal(with({"w", std::vector<int64_t>(17, 1), 1, floats({1})})),
              HasSubstr("at most 16 dimensions, found 17"));
}

TEST(OrtFile, NoOffsetLeadsOutOfTheFile) {
  OrtPlaces places;
  const std::string good = ort_file(kOrtTensors, &places);
  const auto wrong = [&](size_t at, const std::string& bytes) {
    std::string copy = good;
    return refusal(copy.replace(at, bytes.size(), bytes));
  };
  EXPECT_THAT(wrong(0, u32(0xffffffff)), HasSubstr("found the end at"));
  EXPECT_THAT(wrong(places.model_pointer, u32(0xfffffff0)), HasSubstr("found the end at"));
  EXPECT_THAT(wrong(places.list - 4, u32(99'999)), HasSubstr("found the end at"));
  EXPECT_THAT(wrong(places.list - 4, u32(0xffffffff)), HasSubstr("found the end at"));
  EXPECT_THAT(wrong(places.names[0] - 4, u32(1000)), HasSubstr("found the end at"));
  EXPECT_THAT(wrong(places.data[3] - 4, u32(6)), HasSubstr("found the end at"));
  EXPECT_THAT(wrong(places.tables[0], u32(0x7fffffff)), HasSubstr("before its begin"));
  EXPECT_THAT(wrong(places.tables[0], u32(0x80000000)), HasSubstr("found the end at"));
}

TEST(OrtFile, InitializersTogetherAreNotLargerThanTheFile) {
  std::vector<OrtTensor> tensors;
  for (int i = 0; i < 10; ++i) tensors.push_back({"w" + std::to_string(i), {100}, 1, ""});
  tensors.back().data.resize(400);
  OrtPlaces places;
  std::string content = ort_file(tensors, &places);
  for (int i = 0; i < 9; ++i) {  // all have the numbers of the last
    const size_t pointer = places.tables[i] + 4 + 4 * 4;
    content.replace(pointer, 4, u32(places.data.back() - 4 - pointer));
  }
  EXPECT_THAT(refusal(content), HasSubstr("more than the file has bytes"));
}

TEST(OrtFile, AGraphMayHaveNoInitializers) {
  OrtPlaces places;
  std::string content = ort_file(kOrtTensors, &places);
  content.replace(places.graph_fields, 2, u16(4));  // its list of fields ends before the first
  EXPECT_TRUE(table_of(content).tensors.empty());
}

TEST(OrtFile, EveryCutIsNoticed) {
  const std::string good = ort_file({kOrtTensors.begin(), kOrtTensors.begin() + 3});
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(refusal(good.substr(0, size)), "") << size;
}

// Any byte may have any value: a table whose numbers are all in the file, or a refusal.
TEST(OrtFile, NoDamageLeadsOutOfTheFile) {
  const std::string good = ort_file(kOrtTensors);
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); ++at)
    for (const int change : {1, 2, 4, 0x10, 0x80, 0xff}) {
      std::string copy = good;
      copy[at] = static_cast<char>(copy[at] ^ change);
      try {
        const auto owner = test_files::shared(copy);
        const auto bytes = std::as_bytes(std::span(*owner));
        const TensorTable table = ort_file_from_bytes(bytes, owner, "damaged.ort");
        for (const auto& [name, view] : table.tensors) {
          ASSERT_EQ(view.bytes.size(), static_cast<size_t>(view.numel()) * size_of(view.dtype)) << name;
          if (view.bytes.empty()) continue;
          ASSERT_GE(view.bytes.data(), bytes.data());
          ASSERT_LE(view.bytes.data() + view.bytes.size(), bytes.data() + bytes.size());
        }
      } catch (const Error& error) {
        ++refused;
        ASSERT_EQ(error.exit_code(), 2);
      }
    }
  EXPECT_GT(refused, good.size());
}

}  // namespace
}  // namespace aha
