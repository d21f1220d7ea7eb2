#include "aha/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/testing/checks.h"
#include "aha/weights/read_weights.h"
#include "aha/weights/test_files.h"

namespace aha {
namespace {

using testing::HasSubstr;

TensorTable table_from(const std::string& content) {
  auto owner = test_files::shared(content);
  return safetensors_from_bytes(std::as_bytes(std::span(*owner)), owner, "x.safetensors");
}

std::string table_refusal(const std::string& content) {
  return checks::message_of([&] { table_from(content); });
}

std::string table_refusal(std::string_view header, std::string_view data) {
  return table_refusal(test_files::safetensors(header, data));
}

const std::string kTwo =
    R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})";

TEST(Safetensors, ReadsNamesTypesShapesAndBytes) {
  const auto table = table_from(test_files::safetensors(
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"n":{"data_offsets":[8,10],"shape":[],"dtype":"I16"}}   )",
      test_files::floats({1.5f, -2.0f}) + std::string("\xfe\xff", 2)));
  EXPECT_EQ(table.metadata.at("format"), "pt");
  EXPECT_EQ(table.at("w").shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(floats_from_view(table.at("w")), (std::vector<float>{1.5f, -2.0f}));
  EXPECT_EQ(table.at("n").dtype, DType::kI16);
  EXPECT_EQ(floats_from_view(table.at("n")), std::vector<float>{-2.0f});
}

TEST(Safetensors, AnEmptyTableAndEmptyTensorsAreValid) {
  EXPECT_TRUE(table_from(test_files::safetensors("{}")).tensors.empty());
  const auto table = table_from(test_files::safetensors(
      R"({"e":{"dtype":"F32","shape":[0,3],"data_offsets":[4,4]},"f":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      "abcd"));
  EXPECT_EQ(table.at("e").numel(), 0);
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = test_files::safetensors(kTwo, "123456789");
  ASSERT_EQ(table_from(whole).tensors.size(), 2u);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(table_refusal(whole.substr(0, size)), HasSubstr("x.safetensors"));
}

TEST(Safetensors, TheHeaderLengthIsCheckedBeforeItIsUsed) {
  EXPECT_THAT(table_refusal(test_files::u64(100'000'001) + "{}"), HasSubstr("at most 100000000"));
  EXPECT_THAT(table_refusal(test_files::u64(std::numeric_limits<uint64_t>::max()) + "{}"),
              HasSubstr("at most"));
  EXPECT_THAT(table_refusal(test_files::u64(std::numeric_limits<uint64_t>::max() - 7) + "{}"),
              HasSubstr("at most"));
  EXPECT_THAT(table_refusal(test_files::u64(3) + "{}"), HasSubstr("cut off"));
}

TEST(Safetensors, OnlyOneJsonObjectOfTheAllowedShapeIsAHeader) {
  EXPECT_THAT(table_refusal(" {}", ""), HasSubstr("begins with '{'"));
  EXPECT_THAT(table_refusal("", ""), HasSubstr("begins with '{'"));
  EXPECT_THAT(table_refusal("[]", ""), HasSubstr("begins with '{'"));
  EXPECT_THAT(table_refusal("{} x", ""), HasSubstr("not valid JSON"));
  EXPECT_THAT(table_refusal("{}{}", ""), HasSubstr("not valid JSON"));
  EXPECT_THAT(table_refusal(std::string_view("{}\0junk", 7), ""), HasSubstr("zero byte"));
  EXPECT_THAT(table_refusal("{\"\xff\":1}", ""), HasSubstr("not valid JSON"));
  EXPECT_THAT(table_refusal(R"({"a":1})", ""),
              HasSubstr("tensor 'a': expected dtype, shape and data_offsets [begin, end]"));
  EXPECT_THAT(table_refusal(R"({"a":null})", ""), HasSubstr("non-negative integers, found null"));
  EXPECT_THAT(table_refusal(R"({"a":[]})", ""), HasSubstr("found an array"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":{}}})", ""), HasSubstr("found an object"));
  EXPECT_THAT(table_refusal(R"({"a":{"shape":[[1]]}})", ""), HasSubstr("found an array"));
  EXPECT_THAT(table_refusal(R"({"a":{"shape":[true]}})", ""), HasSubstr("found {\"shape\":[true]}"));
  EXPECT_THAT(table_refusal(R"({"__metadata__":{"k":1}})", ""), HasSubstr("expected text"));
  EXPECT_THAT(table_refusal(R"({"__metadata__":"k"})", ""), HasSubstr("expected text"));
  EXPECT_THAT(table_refusal(R"({"__metadata__":{"k":{}}})", ""), HasSubstr("found an object"));
  EXPECT_THAT(table_refusal("{\"a\":" + std::string(100'000, '['), ""), HasSubstr("found an array"));
}

TEST(Safetensors, NamesThatOccurTwiceAreRefused) {
  const std::string a = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_THAT(table_refusal("{" + a + "," + a + "}", "1"), HasSubstr("'a' occurs twice"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "1"),
              HasSubstr("'a.dtype' occurs twice"));
  EXPECT_THAT(table_refusal(R"({"__metadata__":{},"__metadata__":{}})", ""),
              HasSubstr("'__metadata__' occurs twice"));
  EXPECT_THAT(table_refusal(R"({"__metadata__":{"k":"1","k":"2"}})", ""),
              HasSubstr("'__metadata__.k' occurs twice"));
}

TEST(Safetensors, ATensorHasExactlyItsThreeFields) {
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1]}})", "1"),
              HasSubstr("expected dtype, shape and data_offsets [begin, end]"));
  EXPECT_THAT(table_refusal(R"({"a":{}})", ""), HasSubstr("found {}"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"strides":[1]}})", "1"),
              HasSubstr("\"strides\":[1]"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "1"),
              HasSubstr("[begin, end]"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", "1"),
              HasSubstr("[begin, end]"));
}

TEST(Safetensors, ElementTypesThatCannotBeHeldAreRefusedByName) {
  for (const char* name : {"F8_E4M3", "U16", "C64", "F4", "f32", ""})
    EXPECT_THAT(
        table_refusal(fmt::format(R"({{"a":{{"dtype":"{}","shape":[1],"data_offsets":[0,1]}}}})", name), "1"),
        HasSubstr(fmt::format("element type '{}' is not supported; available: BOOL, U8", name)));
}

TEST(Safetensors, NumbersAreNonNegativeIntegers) {
  for (const char* number : {"-1", "1.0", "1e0", "18446744073709551616", "-0"})
    EXPECT_THAT(
        table_refusal(fmt::format(R"({{"a":{{"dtype":"U8","shape":[{}],"data_offsets":[0,1]}}}})", number),
                      "1"),
        HasSubstr("non-negative integers, found"));
  EXPECT_THAT(
      table_refusal(R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", "1"),
      HasSubstr("64 bits"));
}

TEST(Safetensors, ShapesAreBounded) {
  EXPECT_THAT(
      table_refusal(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""),
      HasSubstr("64 bits"));
  EXPECT_THAT(
      table_refusal(R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", ""),
      HasSubstr("64 bits"));
  EXPECT_THAT(
      table_refusal(
          R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "1"),
      HasSubstr("at most 16 dimensions"));
}

TEST(Safetensors, TheShapeAgreesWithTheBytes) {
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"),
              HasSubstr("takes 8 bytes, data_offsets hold 4"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "1"),
              HasSubstr("found [1, 0]"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "1"),
              HasSubstr("within the 1 bytes"));
}

TEST(Safetensors, TensorsCoverTheDataWithoutHoleOverlapOrRest) {
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"),
              HasSubstr("a hole"));
  EXPECT_THAT(
      table_refusal(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "123"),
      HasSubstr("overlap"));
  EXPECT_THAT(
      table_refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
          "123"),
      HasSubstr("a hole"));
  EXPECT_THAT(table_refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "12"),
              HasSubstr("left over"));
  EXPECT_THAT(table_refusal("{}", "1"), HasSubstr("left over"));
}

TEST(Safetensors, HostileNamesDoNotReachTheTerminal) {
  EXPECT_THAT(table_refusal(R"({"a\u001b[2J":{}})", ""), HasSubstr("a\\x1b[2J"));
  EXPECT_THAT(table_refusal("{\"" + std::string(5000, 'n') + "\":{}}", ""), HasSubstr("at most 4096"));
}

TEST(Safetensors, WrittenTablesReadBackEqual) {
  const std::string path = testing::TempDir() + "/written.safetensors";
  TensorTable table;
  table.metadata = {{"format", "pt"}, {"quote\"", "line\nbreak \xc3\xa9"}};
  table.tensors["b.weight"] = view_from_floats({2, 2}, {1, 2, 3, std::numeric_limits<float>::infinity()});
  table.tensors["a.scalar"] = view_from_floats({}, {7});
  table.tensors["empty"] = view_from_floats({0, 5}, {});
  auto flags = test_files::shared(std::string("\1\0\1", 3));
  table.tensors["c.flags"] = {DType::kBool, {3}, std::as_bytes(std::span(*flags)), flags};
  auto wide = test_files::shared(std::string(16, '\2'));
  table.tensors["z.wide"] = {DType::kI64, {2}, std::as_bytes(std::span(*wide)), wide};
  write_safetensors(path, table);

  const auto back = read_safetensors(path);
  EXPECT_EQ(back.metadata, table.metadata);
  ASSERT_EQ(back.names(), table.names());
  for (const auto& [name, view] : table.tensors) {
    EXPECT_EQ(back.at(name).dtype, view.dtype);
    EXPECT_EQ(back.at(name).shape, view.shape);
    EXPECT_TRUE(std::equal(view.bytes.begin(), view.bytes.end(), back.at(name).bytes.begin(),
                           back.at(name).bytes.end()));
    const auto address = reinterpret_cast<uintptr_t>(back.at(name).bytes.data());
    EXPECT_EQ(address % size_of(view.dtype), 0u) << name << " is not aligned";
  }
  EXPECT_LT(back.at("z.wide").bytes.data(), back.at("a.scalar").bytes.data());
  EXPECT_LT(back.at("a.scalar").bytes.data(), back.at("b.weight").bytes.data());
  EXPECT_LT(back.at("b.weight").bytes.data(), back.at("c.flags").bytes.data());
  EXPECT_EQ(read_weights(path).names(), table.names());

  const std::string first = read_file(path);
  write_safetensors(path, back);
  EXPECT_EQ(read_file(path), first);
}

TEST(Safetensors, AWriteThatIsRefusedLeavesTheOldFile) {
  const std::string path = testing::TempDir() + "/kept.safetensors";
  TensorTable table;
  table.tensors["a"] = view_from_floats({1}, {1});
  write_safetensors(path, table);
  const std::string before = read_file(path);
  auto wrong = table;
  wrong.tensors["a"].shape = {2};
  EXPECT_THROW(write_safetensors(path, wrong), Error);
  wrong = table;
  wrong.tensors["bad\xff"] = table.at("a");
  EXPECT_THROW(write_safetensors(path, wrong), Error);
  wrong = table;
  wrong.tensors["__metadata__"] = table.at("a");
  EXPECT_THROW(write_safetensors(path, wrong), Error);
  EXPECT_EQ(read_file(path), before);
}

TEST(Safetensors, ViewsOutliveTheTable) {
  const std::string path = testing::TempDir() + "/outlived.safetensors";
  TensorTable table;
  table.tensors["a"] = view_from_floats({2}, {3, 4});
  write_safetensors(path, table);
  const TensorView view = read_safetensors(path).at("a");
  std::filesystem::remove(path);
  EXPECT_EQ(floats_from_view(view), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace aha
