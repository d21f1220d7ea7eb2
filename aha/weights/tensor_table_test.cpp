#include "aha/weights/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/weights/read_weights.h"
#include "aha/weights/test_files.h"

namespace aha {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

float float_of(DType dtype, const std::string& bytes) {
  auto owner = test_files::shared(bytes);
  return floats_from_view({dtype, {}, std::as_bytes(std::span(*owner)), owner}).at(0);
}

TEST(TensorTable, TypeNamesAndSizesAgreeWithSafetensors) {
  const std::pair<const char*, size_t> rows[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2},
                                                 {"I32", 4},  {"I64", 8}, {"F16", 2}, {"BF16", 2},
                                                 {"F32", 4},  {"F64", 8}};
  for (const auto& [name, size] : rows) {
    EXPECT_EQ(name_of(dtype_from_name(name, "test")), name);
    EXPECT_EQ(size_of(dtype_from_name(name, "test")), size);
  }
}

TEST(TensorTable, HalfPrecisionConvertsExactly) {
  using test_files::u16;
  EXPECT_EQ(float_of(DType::kF16, u16(0x3c00)), 1.0f);
  EXPECT_EQ(float_of(DType::kF16, u16(0xc000)), -2.0f);
  EXPECT_EQ(float_of(DType::kF16, u16(0x7bff)), 65504.0f);
  EXPECT_EQ(float_of(DType::kF16, u16(0x0400)), 0x1p-14f);
  EXPECT_EQ(float_of(DType::kF16, u16(0x03ff)), 1023 * 0x1p-24f);
  EXPECT_EQ(float_of(DType::kF16, u16(0x8001)), -0x1p-24f);
  EXPECT_TRUE(std::signbit(float_of(DType::kF16, u16(0x8000))));
  EXPECT_EQ(float_of(DType::kF16, u16(0x7c00)), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(float_of(DType::kF16, u16(0x7e00))));
  EXPECT_EQ(float_of(DType::kBF16, u16(0x3f80)), 1.0f);
  EXPECT_EQ(float_of(DType::kBF16, u16(0xc2f7)), -123.5f);
}

TEST(TensorTable, WholeNumbersConvertWithTheirSign) {
  EXPECT_EQ(float_of(DType::kU8, "\xff"), 255.0f);
  EXPECT_EQ(float_of(DType::kI8, "\xff"), -1.0f);
  EXPECT_EQ(float_of(DType::kBool, "\x01"), 1.0f);
  EXPECT_EQ(float_of(DType::kI32, test_files::le(int32_t{-70000})), -70000.0f);
  EXPECT_EQ(float_of(DType::kI64, test_files::le(int64_t{-5})), -5.0f);
  EXPECT_EQ(float_of(DType::kF64, test_files::le(0.5)), 0.5f);
}

TEST(TensorTable, AMissingNameBringsItsNeighbors) {
  TensorTable table;
  table.source = "m.pth";
  for (const char* name : {"a", "head.bias", "head.fc.weight", "z"})
    table.tensors[name] = view_from_floats({1}, {0});
  EXPECT_THAT([&] { table.at("head.weight"); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr("m.pth"), HasSubstr("'head.weight'"),
                                                  HasSubstr("head.fc.weight"))));
}

TEST(ReadWeights, TellsWhatAForeignFileIs) {
  const std::string path = testing::TempDir() + "/foreign.bin";
  const std::pair<std::string, const char*> cases[] = {
      {"", "an empty file"},
      {"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"},
      {"<!DOCTYPE html>", "a web page"},
      {"hello world", "something else"},
  };
  for (const auto& [content, message] : cases) {
    write_file_atomically(path, content);
    EXPECT_THAT([&] { read_weights(path); }, ThrowsMessage<Error>(HasSubstr(message)));
  }
  EXPECT_THAT([&] { read_weights(testing::TempDir() + "/absent"); },
              ThrowsMessage<Error>(HasSubstr("cannot open")));
}

TEST(ReadWeights, AHeaderLengthThatLooksLikeAPickleIsStillSafetensors) {
  const std::string path = testing::TempDir() + "/confusing";
  const std::string header = "{}" + std::string(0x280 - 2, ' ');  // its length begins with 80 02
  write_file_atomically(path, test_files::safetensors(header));
  EXPECT_TRUE(read_weights(path).tensors.empty());
}

}  // namespace
}  // namespace aha
