#include "aha/base/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/test_files.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using test_files::npy;
using test_files::zip_of;
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

TEST(Npy, EveryStoredTypeBecomesFloat) {
  const auto values = [](const std::string& type, const std::string& data, char version = 1) {
    const std::string file =
        npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }\n", data, version);
    return npy_from_bytes(bytes_of(file), "x").values;
  };
  EXPECT_THAT(values("<f4", raw<float>({1.5f, -2})), ElementsAre(1.5f, -2));
  EXPECT_THAT(values("<f8", raw<double>({0.1, 3}), 2), ElementsAre(0.1f, 3));
  EXPECT_THAT(values("<f2", raw<uint16_t>({0x3C00, 0x0001}), 3), ElementsAre(1.0f, std::ldexp(1.0f, -24)));
  EXPECT_THAT(values("<f2", raw<uint16_t>({0xFC00, 0xC100})), ElementsAre(-INFINITY, -2.5f));
  EXPECT_THAT(values("|u1", raw<uint8_t>({255, 7})), ElementsAre(255, 7));
  EXPECT_THAT(values("<i4", raw<int32_t>({-3, 1 << 20})), ElementsAre(-3, 1 << 20));
  EXPECT_THAT(values("<i8", raw<int64_t>({-3, 40})), ElementsAre(-3, 40));
}

TEST(Npy, AWrongHeaderIsRefusedWithAReason) {
  const auto why = [](const std::string& header, const std::string& data = std::string(64, '\0')) {
    const std::string file = npy(header, data);
    return message_of([&] { npy_from_bytes(bytes_of(file), "map.npy"); });
  };
  EXPECT_THAT(why("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("found '>f4'"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}"), HasSubstr("Fortran"));
  EXPECT_THAT(why("{'descr': '<f4', 'shape': (2,)}"), HasSubstr("only a part"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (17,)}"),
              HasSubstr("expected 17 values of 4 bytes, found 64"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}"),
              HasSubstr("too many"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
              HasSubstr("too large"));
  EXPECT_THAT(why("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"), HasSubstr("expected a size"));
  EXPECT_THAT(why("{'descr': '<f4"), HasSubstr("does not end"));
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

TEST(Npz, StoredAndDeflatedMembersAreRead) {
  const std::string member =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", raw<float>({4, 5}));
  for (const bool deflated : {false, true}) {
    const std::string file = zip_of("logits.npy", member, deflated);
    const auto arrays = npz_from_bytes(bytes_of(file), "x.npz");
    ASSERT_TRUE(arrays.contains("logits"));
    EXPECT_THAT(arrays.at("logits").values, ElementsAre(4, 5));
  }
}

TEST(Npz, DamageAnywhereGivesAnErrorOrTheSameValues) {
  const std::string member =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", raw<float>({4, 5}));
  for (const bool deflated : {false, true}) {
    const std::string whole = zip_of("a.npy", member, deflated);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      message_of([&] { npz_from_bytes(bytes_of(cut), "cut"); });
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(~damaged[at]);
      try {
        for (const auto& [name, array] : npz_from_bytes(bytes_of(damaged), "damaged"))
          EXPECT_THAT(array.values, ElementsAre(4, 5)) << at;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInput);
      }
    }
  }
}

TEST(Npz, TheReferenceOfTheTinyTransformerIsReadable) {
  const std::string path = checks::shared_file("weights/vit_tiny_reference.npz");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no real weights at " << path;
  const auto arrays = read_npz(path);
  EXPECT_EQ(arrays.at("input").values.size(), 4u * 3 * 224 * 224);
  EXPECT_EQ(arrays.at("logits").values.size(), 4u * 1000);
}

}  // namespace
}  // namespace aha
