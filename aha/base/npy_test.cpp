#include "aha/base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/test_files.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using test_files::npy;
using testing::ElementsAre;
using testing::HasSubstr;

std::string temp(const std::string& name) {
  return testing::TempDir() + name;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <class T>
std::string raw(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

using checks::message_of;

TEST(Npy, WhatIsWrittenIsReadBack) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {6}, {2, 3}, {1, 2, 3, 4}, {3, 0}}) {
    size_t count = 1;
    for (const int64_t n : shape) count *= static_cast<size_t>(n);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = 0.1f * static_cast<float>(i) - 1;
    write_npy(temp("a.npy"), shape, values);
    const NpyArray back = read_npy(temp("a.npy"));
    EXPECT_EQ(back.shape, shape);
    EXPECT_EQ(back.values, values);
  }
}

TEST(Npy, ValuesStartAtAMultipleOf64) {
  write_npy(temp("b.npy"), {2}, std::vector<float>{1, 2});
  EXPECT_EQ((read_file(temp("b.npy")).size() - 8) % 64, 0u);
}

TEST(Npy, EveryVersionIsRead) {
  for (const char version : {1, 2, 3}) {
    const std::string file =
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", raw<float>({1.5f, -2}), version);
    EXPECT_THAT(npy_from_bytes(bytes_of(file), "x").values, ElementsAre(1.5f, -2));
  }
}

TEST(Npy, EveryTypeIsReadAsFloat) {
  const auto values = [](const std::string& type, const std::string& data) {
    const std::string bytes =
        npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }\n", data);
    return npy_from_bytes(std::as_bytes(std::span(bytes)), "x.npy").values;
  };
  EXPECT_THAT(values("<f8", raw<double>({0.1, 3})), ElementsAre(0.1f, 3));
  EXPECT_THAT(values("<f2", raw<uint16_t>({0x3C00, 0x0001})), ElementsAre(1.0f, std::ldexp(1.0f, -24)));
  EXPECT_THAT(values("<f2", raw<uint16_t>({0xFC00, 0xC100})), ElementsAre(-INFINITY, -2.5f));
  EXPECT_THAT(values("|u1", raw<uint8_t>({255, 7})), ElementsAre(255, 7));
  EXPECT_THAT(values("<i4", raw<int32_t>({-3, 1 << 20})), ElementsAre(-3, 1 << 20));
  EXPECT_THAT(values("<i8", raw<int64_t>({-3, 1 << 20})), ElementsAre(-3, 1 << 20));
}

TEST(Npy, AWrongHeaderIsRefusedWithAReason) {
  const auto why = [](const std::string& header, const std::string& data = std::string(64, '\0')) {
    const std::string file = npy(header, data);
    return message_of([&] { npy_from_bytes(bytes_of(file), "map.npy"); });
  };
  EXPECT_THAT(why("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("found '>f4'"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}"), HasSubstr("C order"));
  EXPECT_THAT(why("{'descr': '<f4', 'shape': (2,)}"), HasSubstr("expected a header"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}"),
              HasSubstr("expected 17 values of 4 bytes, found 64"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}"),
              HasSubstr("too many"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
              HasSubstr("expected a header"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
              HasSubstr("expected a header"));
  EXPECT_THAT(why("{'descr': '<f4"), HasSubstr("expected a header"));
  EXPECT_THAT(why("{'descr': 4, 'fortran_order': False, 'shape': (2,)}"), HasSubstr("expected a header"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"),
              HasSubstr("expected a header"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615,)}"),
              HasSubstr("too many"));
  EXPECT_THAT(why(std::string(10'001, '[')), HasSubstr("at most 10000 bytes"));
  EXPECT_THAT(why("[]"), HasSubstr("map.npy"));
}

TEST(Npy, EveryCutOfAFileIsRefused) {
  const std::string whole =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", raw<float>({1, 2}));
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    message_of([&] { npy_from_bytes(bytes_of(cut), "cut"); });
  }
}

TEST(Npy, AShapeThatDoesNotFitIsNotWritten) {
  EXPECT_THAT(message_of([] {
                write_npy(temp("c.npy"), {2, 2}, std::vector<float>{1, 2, 3});
              }),
              HasSubstr("[2, 2]"));
  EXPECT_FALSE(std::filesystem::exists(temp("c.npy")));
}

}  // namespace
}  // namespace aha
