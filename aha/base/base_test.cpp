#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "aha/base/context.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/options.h"
#include "aha/base/parallel.h"
#include "aha/base/rank_correlation.h"
#include "aha/base/rng.h"
#include "aha/base/startup.h"
#include "aha/base/stats.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using checks::message_of;
using testing::HasSubstr;

TEST(Error, UnknownNameSuggestsTheNearestAndListsAll) {
  const std::vector<std::string> names = {"gradcam", "rise", "ig"};
  const Error error = unknown_name_error("method", "gradcm", names);
  EXPECT_THAT(error.what(), HasSubstr("did you mean 'gradcam'"));
  EXPECT_THAT(error.what(), HasSubstr("gradcam, rise, ig"));
  EXPECT_EQ(error.exit_code(), 2);
}

TEST(Error, TextFromOutsideStaysOnOneLine) {
  EXPECT_EQ(printable("a\nb\x1b[31m"), "a\\x0ab\\x1b[31m");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

struct Sample {
  int steps = 3;
  double rate = 0.5;
  bool fast = false;
  std::string kind = "black";
  std::vector<std::string> names;
};
Fields fields(Sample& s) {
  return Fields()
      .add("steps", s.steps, "how many")
      .range(0, 10)
      .add("rate", s.rate, "how much")
      .range(0, 1)
      .add("fast", s.fast, "hurry")
      .add("kind", s.kind, "which")
      .choices({"black", "mean", "blur"})
      .add("names", s.names, "several");
}

TEST(Options, TextAndJsonGoThroughTheSameChecks) {
  Sample s;
  const Fields f = fields(s);
  set_all_from_spec(f, "steps=7:rate=0.25:fast=true:kind=blur:names=a,b", "sample");
  EXPECT_EQ(s.steps, 7);
  EXPECT_EQ(s.rate, 0.25);
  EXPECT_TRUE(s.fast);
  EXPECT_EQ(s.kind, "blur");
  EXPECT_EQ(s.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_THAT(message_of([&] { set_all_from_spec(f, "steps=11", "sample"); }),
              HasSubstr("expected INT in 0..10, found 11"));
  EXPECT_THAT(message_of([&] { set_all_from_spec(f, "steps=1e3", "sample"); }), HasSubstr("found '1e3'"));
  EXPECT_THAT(message_of([&] { set_all_from_spec(f, "kind=blak", "sample"); }),
              HasSubstr("did you mean 'black'"));
  EXPECT_THAT(message_of([&] { set_all_from_spec(f, "stps=1", "sample"); }),
              HasSubstr("did you mean 'steps'"));
  EXPECT_THAT(message_of([&] {
                set_all_from_json(f, {{"rate", "high"}}, "recipe.toml");
              }),
              HasSubstr("recipe.toml: rate"));
  EXPECT_THAT(message_of([&] { set_all_from_json(f, {{"steps", 2.5}}, "r"); }), HasSubstr("expected INT"));
  EXPECT_THAT(message_of([&] { set_all_from_spec(f, "rate=nan", "sample"); }), HasSubstr("NUMBER"));
  EXPECT_EQ(s.steps, 7) << "a refused value must not get in";
}

TEST(Options, JsonRoundTrips) {
  Sample a;
  a.steps = 9;
  a.names = {"x"};
  Sample b;
  set_all_from_json(fields(b), json_from_fields(fields(a)), "json");
  EXPECT_EQ(b.steps, 9);
  EXPECT_EQ(b.names, a.names);
}

TEST(Rng, MatchesThePublishedPhiloxVectors) {
  // Random123's known answers for philox4x32-10: all-zero input and all-ones input.
  EXPECT_EQ(Rng(0, 0).block(0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(Rng(ones, ones).block(ones),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Rng, SequentialAndRandomAccessAgree) {
  Rng a(7, 3);
  const Rng b(7, 3);
  for (uint64_t i = 0; i < 100; ++i) EXPECT_EQ(a.bits(), b.bits_at(i));
}

TEST(Rng, PermutationHoldsEveryIndexOnceAndBelowIsUniform) {
  Rng rng(1);
  const auto order = rng.permutation(1000);
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_NE(order.front(), 0);
  std::vector<int> count(7);
  for (int i = 0; i < 70000; ++i) ++count[rng.below(7)];
  for (int c : count) EXPECT_NEAR(c, 10000, 5 * 93);  // five standard deviations
}

TEST(Rng, NormalAndGumbelHaveTheirMoments) {
  Rng rng(2);
  double n1 = 0, n2 = 0, g1 = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double n = rng.normal();
    n1 += n, n2 += n * n, g1 += rng.gumbel();
  }
  EXPECT_NEAR(n1 / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(n2 / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(g1 / kDraws, 0.5772156649, 5 * 1.2825 / std::sqrt(kDraws));
}

TEST(Parallel, EveryIndexRunsOnceAndExceptionsReachTheCaller) {
  set_threads(3);
  std::vector<int> seen(1000);
  parallel_for(1000, [&](int64_t i, int worker) {
    EXPECT_LT(worker, 3);
    ++seen[i];
  });
  EXPECT_EQ(seen, std::vector<int>(1000, 1));
  EXPECT_THAT(message_of([] {
                parallel_for(64, [](int64_t i, int) {
                  if (i == 17) throw input_error("at {}", i);
                });
              }),
              "at 17");
  set_threads(0);
}

TEST(Parallel, DenormalsAreFlushedInEveryWorker) {
  set_threads(2);
  parallel_for(8, [](int64_t, int) {
    volatile float tiny = 1e-38f;
    volatile float less = tiny * 1e-3f;
    EXPECT_EQ(less, 0.f);
  });
  set_threads(0);
}

TEST(Stats, BootstrapCoversTheMeanAndIsSeeded) {
  Rng rng(5);
  std::vector<double> values(400);
  for (auto& v : values) v = 2 + rng.normal();
  const Interval a = bootstrap(values, 1), b = bootstrap(values, 1), c = bootstrap(values, 2);
  EXPECT_EQ(a.low, b.low);
  EXPECT_NE(a.low, c.low);
  const double half = 1.96 * standard_deviation(values) / 20;
  EXPECT_NEAR(a.high - a.mean, half, 0.15 * half);
  EXPECT_NEAR(a.mean - a.low, half, 0.15 * half);
}

TEST(Stats, PairedDifferenceSeesAShiftThatUnpairedNoiseHides) {
  Rng rng(6);
  std::vector<double> a(200), b(200), c(200);
  for (size_t i = 0; i < a.size(); ++i) {
    b[i] = 10 * rng.normal();
    a[i] = b[i] + 0.1 + 0.1 * rng.normal();
    c[i] = b[i] + 0.1 * rng.normal();
  }
  EXPECT_LT(paired_difference(a, b).p_value, 0.002);
  EXPECT_GT(paired_difference(a, b).difference.low, 0.05);
  EXPECT_GT(paired_difference(c, b).p_value, 0.002);
}

TEST(Stats, RankCorrelationIsOneForAnyMonotoneMapAndAveragesTies) {
  const std::vector<double> a = {1, 2, 3, 4}, b = {1, 8, 27, 64}, c = {4, 3, 2, 1}, d = {1, 1, 2, 2};
  EXPECT_DOUBLE_EQ(rank_correlation(a, b), 1);
  EXPECT_DOUBLE_EQ(rank_correlation(a, c), -1);
  EXPECT_NEAR(rank_correlation(a, d), 0.894427191, 1e-9);
}

TEST(Files, HashMatchesTheStandardsExample) {
  const auto hash_of = [](const std::string& text) {
    return sha256_of_bytes(std::as_bytes(std::span(text)));
  };
  EXPECT_EQ(hash_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // Where the length still fits into the last block, where it does not, and behind a whole block.
  EXPECT_EQ(hash_of(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(hash_of(std::string(56, 'a')),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(hash_of(std::string(64, 'a')),
            "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  EXPECT_EQ(sha256_of_bytes({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Files, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const std::string folder = testing::TempDir() + "/aha_files";
  std::filesystem::remove_all(folder);
  make_directories(folder);
  const std::string path = folder + "/a.txt";
  write_file_atomically(path, "old");
  EXPECT_THROW(write_file_atomically(path,
                                     [](const ByteSink& sink) {
                                       const std::string half = "hal";
                                       sink(std::as_bytes(std::span(half)));
                                       throw work_error("disk on fire");
                                     }),
               Error);
  EXPECT_EQ(read_file(path), "old");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 1);
}

TEST(Files, MissingFolderAndTooLargeFilesSayWhichAndWhy) {
  EXPECT_THAT(message_of([] { read_file("no/such/file"); }), HasSubstr("no/such/file: cannot open"));
  EXPECT_THAT(message_of([] { read_file("."); }), HasSubstr("found a directory"));
  const std::string path = testing::TempDir() + "/aha_large.bin";
  write_file_atomically(path, std::string(100, 'x'));
  EXPECT_THAT(message_of([&] { read_file(path, 99); }), HasSubstr("at most 99 bytes, found 100"));
}

TEST(Files, ASpecWithoutItsFoldersKeepsItsWord) {
  EXPECT_EQ(without_folders("list:/home/me/fit.csv"), "list:fit.csv");
  EXPECT_EQ(without_folders("vit_ti_16:../weights/tiny.safetensors"), "vit_ti_16:tiny.safetensors");
  EXPECT_EQ(without_folders("folder:photos/"), "folder:photos/");
  EXPECT_EQ(without_folders("/home/me/photos/"), "photos");
  EXPECT_EQ(without_folders("cifar10:train"), "cifar10:train");
  EXPECT_EQ(without_folders("cifar10-vit4"), "cifar10-vit4");
  EXPECT_EQ(without_folders("/"), "/");
}

TEST(Context, DeviceTextIsParsedStrictly) {
  EXPECT_TRUE(device_from_text("cuda:3").cuda);
  EXPECT_EQ(device_from_text("cuda:3").index, 3);
  for (const char* wrong : {"cuda:", "cuda:x", "gpu", "cuda:-1", ""})
    EXPECT_THROW(device_from_text(wrong), Error) << wrong;
}

TEST(Startup, AVariableOfTheUserIsNeverTouched) {
  // prepare_process has run in main: whatever stands in the environment now was set by the user or chosen,
  // and the report says which.
  for (const auto& choice : library_choices()) {
    EXPECT_STREQ(std::getenv(choice.variable.c_str()), choice.value.c_str());
    EXPECT_FALSE(choice.why.empty());
  }
}

}  // namespace
}  // namespace aha
