#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "aha/base/error.h"
#include "aha/bench/bench_network.h"
#include "aha/bench/machine.h"
#include "aha/bench/methods_section.h"
#include "aha/bench/networks_section.h"
#include "aha/bench/objective_section.h"
#include "aha/bench/peak.h"
#include "aha/bench/problems.h"
#include "aha/bench/sinkhorn_section.h"
#include "aha/bench/timing.h"
#include "aha/methods/catalog.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using checks::message_of;

constexpr const char* kProblems =
    "# rows\n"
    "\n"
    "1 2.5   two words # a remark\n"
    "long 3 4\n";

TEST(Problems, NumbersComeFirstThenWords) {
  const auto problems = problems_from_text(kProblems, "x.txt", 2, false);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].sizes, ElementsAre(1, 2.5));
  EXPECT_EQ(problems[0].words.substr(0, 9), "two words");
}

TEST(Problems, LongOnesAreGivenOnlyWhereAskedFor) {
  const auto problems = problems_from_text(kProblems, "x.txt", 2, true);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_THAT(problems[1].sizes, ElementsAre(3, 4));
}

TEST(Problems, ALineWithTooFewNumbersIsNamed) {
  const auto why = message_of([] { problems_from_text("1 x\n", "x.txt", 2, false); });
  EXPECT_THAT(why, HasSubstr("x.txt: expected 2 numbers, found '1 x'"));
}

TEST(Problems, TheTreesOwnListsAreWellFormed) {
  const std::pair<const char*, int> sections[] = {
      {"gemm", 3},     {"attention", 4}, {"weight_gradient", 3}, {"depthwise", 3}, {"convolution", 3},
      {"networks", 1}, {"sinkhorn", 3},  {"train", 3},           {"refine", 3},    {"eval", 2},
      {"eval-run", 1}, {"fit", 1},       {"methods", 1}};
  for (const auto& [section, count] : sections) {
    const auto usual = problems_of(section, count, false), all = problems_of(section, count, true);
    EXPECT_FALSE(usual.empty()) << section;
    EXPECT_GT(all.size(), usual.size()) << section;
  }
}

TEST(Timing, EveryPieceRunsAsOftenAsTheOthersAndAtLeastAsOftenAsAsked) {
  int first = 0, second = 0;
  const auto slowly = [](int& count) {
    ++count;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto best =
      best_ms_each({[&] { slowly(first); }, [&] { slowly(second); }}, TimeKind::kWall, {0, 4}, Context{});
  EXPECT_EQ(first, 4);
  EXPECT_EQ(second, 4);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_GE(best[0], 2);
}

TEST(Timing, WhatIsShorterThanTheClockTellsIsCalledUntilItIsNot) {
  int calls = 0;
  for (const TimeKind kind : {TimeKind::kThreadCpu, TimeKind::kWall}) {
    const double ms = best_ms([&] { ++calls; }, kind, {0, 3}, Context{});
    EXPECT_GT(ms, 0);
    EXPECT_LT(ms, 0.1);
  }
  EXPECT_GT(calls, 1000);
}

TEST(Timing, MoreWorkTakesLonger) {
  volatile double sum = 0;
  const auto work = [&](int n) {
    for (int i = 0; i < n; ++i) sum = sum + std::sqrt(static_cast<double>(i));
  };
  const auto best =
      best_ms_each({[&] { work(10000); }, [&] { work(1000000); }}, TimeKind::kThreadCpu, {0, 5}, Context{});
  EXPECT_GT(best[1], 10 * best[0]);  // a hundred times as much
}

TEST(Timing, ACanceledMeasurementStops) {
  Context context;
  context.cancel->cancel();
  EXPECT_THROW(best_ms([] {}, TimeKind::kWall, {}, context), Error);
}

TEST(Timing, PeakMemoryIsWhatWasTouchedAtOnce) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer holds freed memory back";
#endif
  constexpr size_t kBytes = 64 << 20;
  const auto touch = [] {
    std::vector<char> block(kBytes);
    std::memset(block.data(), 1, kBytes);
    volatile char sink = block[kBytes / 2];
    (void)sink;
  };
  touch();  // freed memory that the process keeps must not hide the next block
  const auto once = peak_mb(touch);
  if (!once) GTEST_SKIP() << "/proc does not tell";
  const auto twice = peak_mb([&] {
    touch();
    touch();
  });
  EXPECT_NEAR(*once, 64, 4);
  EXPECT_NEAR(*twice, 64, 4);
}

TEST(Peak, EveryLevelOfThisMachineIsFasterThanPlainCode) {
  const Repeats repeats{0.02, 3};
  const double plain = peak_gflops(Isa::kReference, repeats, Context{});
  EXPECT_GT(plain, 0);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx})
    if (isa <= present_isa().isa) {
      EXPECT_GT(peak_gflops(isa, repeats, Context{}), 2 * plain) << name_of(isa);
    }
}

TEST(Peak, ALevelThatIsNotHereIsRefused) {
  if (present_isa().isa == Isa::kAmx) GTEST_SKIP() << "this machine has every level";
  EXPECT_THAT(message_of([] { peak_gflops(Isa::kAmx, {}, Context{}); }), HasSubstr("available up to"));
}

TEST(Machine, SaysWhatWasChosen) {
  const auto json = json_from(this_machine());
  EXPECT_GE(json["cores"].get<int>(), 1);
  EXPECT_GE(json["threads"].get<int>(), 1);
  EXPECT_FALSE(json["kernels"]["f32"].get<std::string>().empty());
  EXPECT_THAT(text_from(this_machine()), HasSubstr(json["isa"].get<std::string>()));
}

class SubjectOf : public testing::TestWithParam<const char*> {};

TEST_P(SubjectOf, IsTheSameNetworkOnBothSides) {
  const Subject subject = make_subject(GetParam(), Context{});
  torch::manual_seed(3);
  const Tensor pixels = torch::rand({2, 3, subject.size, subject.size});
  const torch::NoGradGuard no_grad;
  const Tensor own = subject.forward(pixels), eager = subject.eager_forward(pixels);
  EXPECT_LT((own - eager).norm().item<double>(), 1e-4 * eager.norm().item<double>());
  if (subject.eager) {
    EXPECT_TRUE(torch::equal(subject.eager->logits(pixels), eager));
  }
}

INSTANTIATE_TEST_SUITE_P(Bench, SubjectOf,
                         testing::Values("vit_mini_4", "vit_mini_4:depth=2:classes=7",
                                         "convnext_mini:depths=1,1,1", "dino_vits16"));

TEST(Subject, AnUnknownSizeIsRefused) {
  EXPECT_THAT(message_of([] { make_subject("vit_mini_4:dept=2", Context{}); }), HasSubstr("depth"));
}

TEST(Networks, FiguresSurviveJson) {
  const NetworkFigures figures{1.25, 3.5, 17.0, 5.0};
  const auto back = network_figures_from_json(nlohmann::json(json_from(figures)));
  EXPECT_EQ(back.forward_ms, 1.25);
  EXPECT_EQ(back.forward_backward_ms, 3.5);
  EXPECT_EQ(back.memory_mb, 17.0);
  EXPECT_EQ(back.masks_mb, 5.0);
  const auto encoder = network_figures_from_json({{"forward_ms", 2.0}});
  EXPECT_FALSE(encoder.forward_backward_ms);
}

TEST(Networks, AnUnknownOneIsRefusedWithTheNamesThereAre) {
  NetworkBenchOptions options;
  options.network = "vit5";
  EXPECT_THAT(message_of([&] { bench_networks(options, Context{}); }), HasSubstr("vit4"));
}

TEST(Networks, TheTableShowsHowMuchLongerThePeerTakes) {
  NetworkRow row;
  row.name = "n";
  row.figures = {2, 4, 10, 8};
  row.peer = NetworkFigures{6, 20, 30, 56};
  const auto table = table_from(std::vector{row});
  EXPECT_THAT(table, HasSubstr("3.00x"));
  EXPECT_THAT(table, HasSubstr("7.00x"));  // megabytes
  EXPECT_THAT(table, HasSubstr("5.00x"));
}

TEST(Networks, TheTableShowsTheMemoryOfEveryPrecision) {
  NetworkRow exact, fast;
  exact.name = fast.name = "n";
  exact.precision = "f32", fast.precision = "bf16";
  exact.figures = {2, 4, 10, 812};
  fast.figures = {1, 2, 5, 406};
  const auto table = table_from(std::vector{exact, fast});
  EXPECT_THAT(table, HasSubstr("812"));
  EXPECT_THAT(table, HasSubstr("406"));
}

TEST(Refinement, TheTableShowsAMapBesideTheTargetsForward) {
  RefineRow row{"n", 0, 16, 7, 30, 2, 3.0, 2.0, 12.0};
  EXPECT_THAT(table_from(std::vector{row}), HasSubstr("3.00 ms per image, 1.5 of the target's forwards"));
  EXPECT_THAT(table_from(std::vector{row}), HasSubstr("4.00x"));
  EXPECT_EQ(json_from(row).at("target_forward_ms"), 2.0);
}

TEST(MethodBench, TheTreesOwnListNamesMethodsThatFit) {
  for (const auto& problem : method_problems(true)) {
    const Subject subject = make_subject(problem.architecture, Context{});
    for (const auto& spec : problem.methods)
      EXPECT_NO_THROW(make_method(spec, {*subject.target})) << problem.network << " " << spec;
  }
}

TEST(MethodBench, TheTableShowsPassesTimesAndHowMuchLongerThePeerTakes) {
  MethodBenchRow row{"n", "ig:steps=20", 8, 2, "f32", "avx2", {20, 20}, {2, 5}, MethodTimes{6, 25}};
  const auto table = table_from(std::vector{row});
  for (const char* part : {"ig:steps=20", "20 F + 20 B", "6.000 (3.00x)", "25.000 (5.00x)"})
    EXPECT_THAT(table, HasSubstr(part));
  EXPECT_EQ(json_from(row)["peer"]["alone_ms"], 25);
  row.peer.reset();
  EXPECT_FALSE(json_from(row).contains("peer"));
}

TEST(SinkhornBench, TheFusedPathNeedsLessTimeAndMemoryThanAutograd) {
  for (const auto& row : bench_sinkhorn({.seconds = 0}, Context{})) {
    EXPECT_LT(row.ms, row.reference_ms) << row.K;
    EXPECT_GT(row.memory_mb, 0);
    if (row.reference_memory_mb && row.K > 100) {
      EXPECT_LT(row.memory_mb, *row.reference_memory_mb) << row.K;
    }
  }
}

}  // namespace
}  // namespace aha
