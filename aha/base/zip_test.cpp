#include "aha/base/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/test_files.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using test_files::ZipEntry;
using testing::HasSubstr;

ZipArchive read(const std::string& content) {
  ZipArchive archive = zip_from_bytes(std::as_bytes(std::span(content)), "x.zip");
  check_crc(archive);
  return archive;
}

std::string text_of(const ZipMember& member) {
  return {reinterpret_cast<const char*>(member.bytes.data()), member.bytes.size()};
}

std::string refusal(const std::string& content) {
  return checks::message_of([&] { read(content); });
}

std::string refusal(const std::vector<ZipEntry>& entries, const test_files::ZipForm& form = {}) {
  return refusal(test_files::zip(entries, form));
}

TEST(Zip, ReadsStoredMembers) {
  const std::string content =
      test_files::zip({{"a/data.pkl", "hello"}, {"a/data/0", ""}, {"a/version", "3\n"}});
  const auto archive = read(content);
  ASSERT_EQ(archive.members.size(), 3u);
  EXPECT_EQ(text_of(archive.members.at("a/data.pkl")), "hello");
  EXPECT_EQ(text_of(archive.members.at("a/data/0")), "");
  EXPECT_EQ(text_of(archive.members.at("a/version")), "3\n");
}

TEST(Zip, ReadsStreamedMembersZip64AndAComment) {
  const std::string streamed = test_files::zip({{.name = "a", .content = "one", .flags = 0x808}});
  EXPECT_EQ(text_of(read(streamed).members.at("a")), "one");
  const std::string large =
      test_files::zip({{"b", "zero"}, {.name = "a", .content = "two", .zip64 = true}}, {.zip64_end = true});
  EXPECT_EQ(text_of(read(large).members.at("a")), "two");
  const std::string commented = test_files::zip({{"a", "three"}}, {.comment = "PK\5\6 is not the end"});
  EXPECT_EQ(text_of(read(commented).members.at("a")), "three");
}

TEST(Zip, EveryTruncationIsRefused) {
  const std::string whole = test_files::zip({{"a", "12345"}, {"b", "678"}}, {.zip64_end = true});
  ASSERT_EQ(read(whole).members.size(), 2u);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("x.zip"));
}

TEST(Zip, AFlippedByteOfAMemberIsNoticed) {
  std::string content = test_files::zip({{"a", "some longer content"}});
  content[content.find("longer")] ^= 1;
  EXPECT_THAT(refusal(content), HasSubstr("member 'a' is damaged: expected CRC-32"));
  EXPECT_THAT(refusal({{.name = "a", .content = "x", .flags = 8, .crc_xor = 1}}), HasSubstr("damaged"));
}

TEST(Zip, CompressedAndEncryptedMembersAreRefused) {
  EXPECT_THAT(refusal({{.name = "a", .content = "x", .method = 8}}), HasSubstr("compression method 8"));
  EXPECT_THAT(refusal({{.name = "a", .content = "x", .flags = 1}}), HasSubstr("encrypted"));
}

TEST(Zip, NamesArePlainRelativePathsThatOccurOnce) {
  EXPECT_THAT(refusal({{"a", "1"}, {"a", "2"}}), HasSubstr("occurs twice"));
  for (const std::string name : {"/a", "../a", "a/../b", "a/..", "..", "a\\b", ""})
    EXPECT_THAT(refusal({{name, "1"}}), HasSubstr("not a plain relative path")) << name;
  EXPECT_THAT(refusal({{std::string("a\0b", 3), "1"}}), HasSubstr("not a plain relative path"));
  EXPECT_THAT(refusal({{std::string(5000, 'a'), "1"}}), HasSubstr("not a plain relative path"));
}

TEST(Zip, TheDirectoryAndTheLocalHeadersAgree) {
  EXPECT_THAT(refusal({{.name = "a", .content = "1", .local_name = "b"}}), HasSubstr("contradicts"));
  EXPECT_THAT(refusal({{.name = "a", .content = "1", .local_offset_plus = 1}}), HasSubstr("x.zip"));
  EXPECT_THAT(refusal({{.name = "a", .content = "1", .local_offset_plus = 1000}}), HasSubstr("outside"));
  EXPECT_THAT(refusal({{.name = "a", .content = "1", .flags = 8, .stated_size_plus = 500}}),
              HasSubstr("beyond"));
}

TEST(Zip, OverlappingMembersAreRefused) {
  EXPECT_THAT(refusal({{.name = "a", .content = "1", .flags = 8, .stated_size_plus = 5},
                       {.name = "b", .content = "2"}}),
              HasSubstr("overlap"));
}

TEST(Zip, TheDirectoryIsExactlyWhatTheEndRecordSays) {
  EXPECT_THAT(refusal({{"a", "1"}}, {.members_plus = 1}), HasSubstr("cut off"));
  EXPECT_THAT(refusal({{"a", "1"}, {"b", "1"}}, {.members_plus = static_cast<size_t>(-1)}),
              HasSubstr("left over"));
  EXPECT_THAT(refusal({{"a", "1"}}, {.directory_size_plus = 1}), HasSubstr("expected the directory to end"));
  EXPECT_THAT(refusal({{"a", "1"}}, {.directory_offset_plus = 100}),
              HasSubstr("expected the directory to end"));
  EXPECT_THAT(refusal({{"a", "1"}}, {.before_end = "junk"}), HasSubstr("expected the directory to end"));
  EXPECT_THAT(refusal({{"a", "1"}}, {.zip64_end = true, .members_plus = 5'000'000}),
              HasSubstr("at most 1000000"));
}

}  // namespace
}  // namespace aha
