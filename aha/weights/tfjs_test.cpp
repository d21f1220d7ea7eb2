#include "aha/weights/tfjs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/files.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using checks::message_of;
using testing::HasSubstr;

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

constexpr const char* kManifest =
    R"({"weightsManifest":[{"paths":["a.bin","b.bin"],"weights":[)"
    R"({"name":"fc/kernel","shape":[2,2],"dtype":"float32"},{"name":"fc/bias","shape":[2],"dtype":"float32"}]}]})";

// Six floats in two shards, the first of which ends within the second tensor.
std::string tfjs_folder(const std::string& name, const std::string& manifest = kManifest) {
  const std::string folder = checks::fresh_folder("tfjs_" + name);
  write_file_atomically(folder + "/model.json", manifest);
  const std::string all = bytes_of({1, 2, 3, 4, 5, 6});
  write_file_atomically(folder + "/a.bin", all.substr(0, 18));
  write_file_atomically(folder + "/b.bin", all.substr(18));
  return folder;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Tfjs, JoinsTheShardsOfAGroup) {
  const TensorTable table = read_tfjs(tfjs_folder("two"));
  ASSERT_EQ(table.tensors.size(), 2u);
  EXPECT_EQ(table.at("fc/kernel").shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(floats_from_view(table.at("fc/kernel")), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(floats_from_view(table.at("fc/bias")), (std::vector<float>{5, 6}));
}

TEST(Tfjs, RefusesWhatItCannotRead) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    return message_of([&] { read_tfjs(tfjs_folder("broken", replaced(kManifest, from, to))); });
  };
  EXPECT_THAT(refusal("\"shape\":[2]", "\"shape\":[3]"),
              HasSubstr("expected 12 bytes from byte 16 on, found 8"));
  EXPECT_THAT(refusal("\"shape\":[2]", "\"shape\":[1]"), HasSubstr("expected 20 bytes"));
  EXPECT_THAT(refusal("\"shape\":[2]", "\"shape\":[-2]"), HasSubstr("sizes from 1"));
  EXPECT_THAT(refusal("\"dtype\":\"float32\"", "\"dtype\":\"uint8\""), HasSubstr("float32"));
  EXPECT_THAT(refusal("fc/bias", "fc/kernel"), HasSubstr("found it twice"));
  EXPECT_THAT(refusal("a.bin", "../a.bin"), HasSubstr("shards beside it"));
  EXPECT_THAT(refusal("b.bin", "c.bin"), HasSubstr("c.bin"));
  EXPECT_THAT(refusal("weightsManifest", "manifest"), HasSubstr("weightsManifest"));
  EXPECT_THAT(refusal("{", "["), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace aha
