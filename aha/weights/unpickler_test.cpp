#include "aha/weights/unpickler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/testing/checks.h"
#include "aha/weights/test_files.h"

namespace aha {
namespace {

using test_files::call;
using test_files::pickle;
using testing::HasSubstr;
using namespace std::string_literals;

PickleTree read(const std::string& bytes, const PickleLimits& limits = {}) {
  return tree_from_pickle(std::as_bytes(std::span(bytes)), "x.pth", limits);
}

std::string refusal(const std::string& bytes, const PickleLimits& limits = {}) {
  return checks::message_of([&] { read(bytes, limits); });
}

template <class T>
T value(const std::string& body) {
  const auto tree = read(pickle(body));
  const T* found = tree.root->get<T>();
  if (!found) {
    ADD_FAILURE() << "found " << describe(tree.root);
    return {};
  }
  return *found;
}

TEST(Unpickler, ReadsNumbers) {
  EXPECT_EQ(value<int64_t>("K\xff"), 255);
  EXPECT_EQ(value<int64_t>("M\xff\xff"), 65535);
  EXPECT_EQ(value<int64_t>("J\xff\xff\xff\xff"), -1);
  EXPECT_EQ(value<int64_t>("\x8a\x00"s), 0);
  EXPECT_EQ(value<int64_t>("\x8a\x01\xff"), -1);
  EXPECT_EQ(value<int64_t>("\x8a\x02\xff\x00"s), 255);
  EXPECT_EQ(value<int64_t>("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value<PickleLong>("\x8a\x09"
                              "123456789")
                .little_endian,
            "123456789");
  EXPECT_EQ(value<double>("G\x3f\xf8\x00\x00\x00\x00\x00\x00"s), 1.5);
  EXPECT_TRUE(value<bool>("\x88"));
  EXPECT_FALSE(value<bool>("\x89"));
}

TEST(Unpickler, ReadsTextsOfAllProtocols) {
  EXPECT_EQ(value<std::string>("X\x02\x00\x00\x00hi"s), "hi");
  EXPECT_EQ(value<std::string>("U\x02hi"), "hi");
  EXPECT_EQ(value<std::string>("T\x02\x00\x00\x00hi"s), "hi");
  EXPECT_EQ(value<std::string>("\x8c\x02hi"), "hi");
  EXPECT_EQ(value<std::string>("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi"s), "hi");
  EXPECT_EQ(value<PickleBytes>("C\x02hi").content, "hi");
  EXPECT_EQ(value<PickleBytes>("B\x02\x00\x00\x00hi"s).content, "hi");
}

TEST(Unpickler, FillsContainers) {
  EXPECT_EQ(value<PickleTuple>("(K\1K\2K\3K\4t").items.size(), 4u);
  EXPECT_EQ(value<PickleTuple>("K\1K\2K\3\x87").items.size(), 3u);
  EXPECT_EQ(value<PickleList>("](K\1K\2eK\3a").items.size(), 3u);
  EXPECT_EQ(value<PickleDict>("}(K\1K\2K\3K\4uK\5K\6s").items.size(), 3u);
  EXPECT_EQ(value<PickleSet>("\x8f(K\1K\2\x90").items.size(), 2u);
}

TEST(Unpickler, TheMemoGivesTheSameNodeAgain) {
  const auto tree = read(pickle("]q\x07h\x07\x86"));
  const auto& items = tree.root->get<PickleTuple>()->items;
  EXPECT_EQ(items[0], items[1]);
  const auto wide = read(pickle("]r\x00\x01\x00\x00j\x00\x01\x00\x00\x86"s));
  EXPECT_EQ(wide.root->get<PickleTuple>()->items.size(), 2u);
  const auto modern = read("\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00]\x94h\x00\x86."s);
  EXPECT_EQ(modern.root->get<PickleTuple>()->items.size(), 2u);
}

TEST(Unpickler, CallsNothingAndRemembersWhatWasAsked) {
  const auto tree = read(pickle(call("posix", "system", {test_files::text("touch owned")}) +
                                test_files::dict({{"x", "K\1"}}) + "b"));
  const auto* object = tree.root->get<PickleObject>();
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(describe(tree.root), "a call of posix.system");
  EXPECT_NE(object->state->get<PickleDict>(), nullptr);
  const auto stacked = read("\x80\x04\x8c\x05posix\x8c\x06system\x93)R."s);
  EXPECT_EQ(describe(stacked.root), "a call of posix.system");
  const auto made = read(pickle(test_files::global("argparse", "Namespace") + ")\x81}b"));
  EXPECT_EQ(describe(made.root), "a call of argparse.Namespace");
  const auto of_result = read(pickle(call("a", "b", {}) + ")R"));
  EXPECT_EQ(describe(of_result.root), "a call of something computed");
}

TEST(Unpickler, StopsWhereThePickleStops) {
  EXPECT_EQ(read(pickle("N") + "more").consumed, 4u);
}

TEST(Unpickler, EveryTruncationIsRefused) {
  const std::string whole = pickle(test_files::dict({{"w", test_files::tensor()}}));
  read(whole);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("cut off"));
}

TEST(Unpickler, OnlyTheOpcodesOfDataAreKnown) {
  // Text opcodes of protocols 0 and 1, extension registry, INST, OBJ, PERSID, out-of-band buffers.
  for (const char op : "IFLSVpgdliPo\x82\x83\x84\x96\x97\x98\x8b"s)
    EXPECT_THAT(refusal(pickle(std::string(1, op) + "1\n1\n")), HasSubstr("is not data"));
  EXPECT_THAT(refusal("\x80\x05N."), HasSubstr("expected protocol 2, 3 or 4, found 5"));
  EXPECT_THAT(refusal("\x80\x01N."), HasSubstr("found 1"));
  EXPECT_THAT(refusal("N."), HasSubstr("protocol number"));
}

TEST(Unpickler, MisuseOfTheStackIsRefused) {
  for (const std::string body :
       {"", "0", "1", "a", "K\1a", "t", "\x85", "u", "s", "e", "]e", "R", "b", "Q", "2", "q\1", "K\1(a"})
    EXPECT_THAT(refusal(pickle(body)), testing::AnyOf(HasSubstr("empty stack"), HasSubstr("a mark"))) << body;
  for (const std::string body : {"(K\1", "K\1K\2", "K\1("})
    EXPECT_THAT(refusal(pickle(body)), testing::AnyOf(HasSubstr("left over"), HasSubstr("empty stack")));
  EXPECT_THAT(refusal(pickle("h\1")), HasSubstr("memo 1"));
  EXPECT_THAT(refusal(pickle("}(K\1u")), HasSubstr("without a value"));
  EXPECT_THAT(refusal(pickle("K\1K\2a")), HasSubstr("appends to an integer"));
  EXPECT_THAT(refusal(pickle("NK\1K\2s")), HasSubstr("sets items of None"));
  EXPECT_THAT(refusal(pickle("]}b")), HasSubstr("sets the state of a list"));
  EXPECT_THAT(refusal(pickle("](K\1\x90")), HasSubstr("adds to a list"));
  EXPECT_THAT(refusal(pickle("K\1K\2R")), HasSubstr("without a tuple"));
  EXPECT_THAT(refusal("\x80\x04K\1K\2\x93."), HasSubstr("no text"));
}

TEST(Unpickler, EverythingIsBounded) {
  EXPECT_THAT(refusal(pickle(std::string(2'000'001, '}'))), HasSubstr("more than"));
  EXPECT_THAT(refusal(pickle("N" + std::string(1'000'000, '2'))), HasSubstr("a stack of more than"));
  EXPECT_THAT(refusal(pickle(std::string(1'000'001, '('))), HasSubstr("a stack of more than"));
  EXPECT_THAT(refusal(pickle("X\xff\xff\xff\xffhi"s)),
              HasSubstr("at most 1048576 bytes, found one of 4294967295"));
  EXPECT_THAT(refusal(pickle("\x8d\xff\xff\xff\xff\xff\xff\xff\xffhi"s)), HasSubstr("at most"));
  EXPECT_THAT(refusal(pickle("N"), {.bytes = 3}), HasSubstr("cut off"));
  EXPECT_THAT(refusal(pickle("](NNNe"), {.references = 2}), HasSubstr("more than 2 references"));
}

TEST(Unpickler, DeepNestingAndCyclesCostNoRecursion) {
  read(pickle("N" + std::string(1'900'000, '\x85')));  // a tuple in a tuple in a tuple ...
  const auto cycle = read(pickle("]q\1h\1a"));
  EXPECT_EQ(cycle.root->get<PickleList>()->items.at(0), cycle.root);
  std::string doubling = "]q\1";
  for (int i = 0; i < 200; ++i) doubling += "0](h\1h\1eq\1";  // 2^200 leaves, 201 nodes
  EXPECT_LE(read(pickle(doubling)).values.size(), 201u);
}

}  // namespace
}  // namespace aha
