#include "aha/server/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "aha/server/lru.h"

namespace aha {
namespace {

using std::chrono::milliseconds;

JobView ended(const JobQueue& jobs, const std::string& id) {
  auto job = jobs.view(id);
  for (int i = 0; job && !job->ended() && i < 200; ++i) job = jobs.wait(id, job->version, milliseconds(100));
  return job.value_or(JobView{});
}

// Until somebody cancels it.
nlohmann::ordered_json endless(const Context& context) {
  for (;;) {
    context.cancel->check();
    std::this_thread::sleep_for(milliseconds(1));
  }
}

TEST(Jobs, GiveTheirResultTheirProgressAndTheirError) {
  JobQueue jobs(Context{}, {});
  const auto good = jobs.add("good", false, [](const Context& context) {
    auto progress = context.progress("counting", 3);
    for (int i = 0; i < 3; ++i) progress.advance(1, "one more");
    return nlohmann::ordered_json{{"answer", 42}};
  });
  const auto bad =
      jobs.add("bad", false, [](const Context&) -> nlohmann::ordered_json { throw input_error("no"); });
  const JobView done = ended(jobs, good);
  EXPECT_EQ(done.state, JobState::kDone);
  EXPECT_EQ(done.result["answer"], 42);
  EXPECT_EQ(done.progress.what, "counting");
  EXPECT_EQ(done.progress.done, 3);
  EXPECT_EQ(json_from(done)["progress"]["note"], "one more");
  const JobView failed = ended(jobs, bad);
  EXPECT_EQ(failed.state, JobState::kFailed);
  EXPECT_EQ(failed.error, "no");
  EXPECT_EQ(failed.status, 400);
  EXPECT_EQ(jobs.all().size(), 2u);
  EXPECT_FALSE(jobs.view("j99"));
}

TEST(Jobs, AShortOneIsDoneWhileALongOneRuns) {
  JobQueue jobs(Context{}, {});
  const auto longer = jobs.add("long", false, endless);
  while (jobs.view(longer)->state == JobState::kQueued) std::this_thread::sleep_for(milliseconds(1));
  const auto waiting = jobs.add("long too", false, endless);
  const auto shorter = jobs.add("short", true, [](const Context&) { return nlohmann::ordered_json(1); });
  EXPECT_EQ(ended(jobs, shorter).state, JobState::kDone);
  EXPECT_EQ(jobs.view(longer)->state, JobState::kRunning);
  EXPECT_EQ(jobs.view(waiting)->state, JobState::kQueued);
  EXPECT_TRUE(jobs.cancel(waiting));  // before it began
  EXPECT_EQ(jobs.view(waiting)->state, JobState::kCanceled);
  EXPECT_TRUE(jobs.cancel(longer));
  EXPECT_EQ(ended(jobs, longer).state, JobState::kCanceled);
  EXPECT_FALSE(jobs.cancel("j99"));
}

TEST(Jobs, AreBoundedInNumberTimeAndMemory) {
  JobQueue jobs(Context{}, {.queue = 2, .seconds = 0.3, .kept = 3});
  const auto late = jobs.add("late", false, endless);
  while (jobs.view(late)->state == JobState::kQueued) std::this_thread::sleep_for(milliseconds(1));
  jobs.add("a", false, endless);
  const auto last = jobs.add("b", false, [](const Context&) { return nlohmann::ordered_json(); });
  EXPECT_THROW(jobs.add("c", false, endless), QueueFull);
  const JobView stopped = ended(jobs, late);
  EXPECT_EQ(stopped.status, 504);
  EXPECT_THAT(stopped.error, ::testing::HasSubstr("0 s"));
  ended(jobs, last);
  for (int i = 0; i < 10; ++i) {
    const auto id = jobs.add("many", true, [](const Context&) { return nlohmann::ordered_json(); });
    while (jobs.view(id) && !jobs.view(id)->ended()) std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_LE(jobs.all().size(), 3u);
}

TEST(Jobs, StoppingCancelsAllOfThem) {
  JobQueue jobs(Context{}, {});
  const auto running = jobs.add("long", false, endless), queued = jobs.add("long", false, endless);
  jobs.stop();
  EXPECT_EQ(jobs.view(running)->state, JobState::kCanceled);
  EXPECT_EQ(jobs.view(queued)->state, JobState::kCanceled);
  EXPECT_THROW(jobs.add("late", true, endless), Error);
}

TEST(Lru, ForgetsTheLongestUnusedFirst) {
  Lru<int> cache(10);
  cache.put("a", 1, 4);
  cache.put("b", 2, 4);
  EXPECT_EQ(cache.find("a"), 1);
  cache.put("c", 3, 4);
  EXPECT_EQ(cache.find("b"), std::nullopt);
  EXPECT_EQ(cache.find("a"), 1);
  cache.put("a", 5, 2);
  EXPECT_EQ(cache.find("a"), 5);
  EXPECT_EQ(cache.bytes(), 6);
  cache.put("huge", 9, 11);
  EXPECT_EQ(cache.find("huge"), std::nullopt);
  EXPECT_EQ(cache.size(), 2u);
}

}  // namespace
}  // namespace aha
