#include "aha/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <torch/nn/functional.h>
#include <torch/optim.h>

#include "aha/tensor/torch.h"

#include <cmath>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/data/dataset.h"
#include "aha/networks/catalog.h"
#include "aha/testing/checks.h"
#include "aha/train/checkpoint.h"
#include "aha/train/classifier_trainer.h"
#include "aha/train/event_file.h"
#include "aha/train/run_log.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
using checks::fresh_path;
using checks::message_of;
using testing::HasSubstr;

// ---- schedule

TEST(Schedule, OneCycleStartsAtATwentyFifthPeaksAfterTheWarmUpAndEndsNearZero) {
  const ScheduleOptions o{.kind = "one-cycle", .lr = 0.5, .warmup = 0.2};
  constexpr double kRounding = 4 * 1.1e-16;  // a few operations on numbers below 1
  EXPECT_NEAR(learning_rate(o, 0, 100), 0.02, kRounding);
  EXPECT_NEAR(learning_rate(o, 10, 100), (0.02 + 0.5) / 2, kRounding);  // half way up a half cosine
  EXPECT_NEAR(learning_rate(o, 20, 100), 0.5, kRounding);
  EXPECT_NEAR(learning_rate(o, 99, 100), 0.5 / 25 / 1e4, 1e-12);
  for (int step = 21; step < 100; ++step)
    EXPECT_LT(learning_rate(o, step, 100), learning_rate(o, step - 1, 100));
}

TEST(Schedule, ConstantRisesLinearlyThenStays) {
  const ScheduleOptions o{.kind = "constant", .lr = 1, .warmup = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(o, 0, 100), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 9, 100), 1);
  EXPECT_DOUBLE_EQ(learning_rate(o, 99, 100), 1);
}

// ---- optimizer

struct TwoLayersImpl : torch::nn::Module {
  TwoLayersImpl()
      : a(register_module("a", torch::nn::Linear(12, 8))), b(register_module("b", torch::nn::Linear(8, 3))) {}
  Tensor forward(const Tensor& x) { return b(torch::gelu(a(x))); }  // (B, 12) -> (B, 3)
  torch::nn::Linear a, b;
};
TORCH_MODULE(TwoLayers);

// The same network and data through ours and through libtorch's optimizer, decay on the matrices only.
template <class Theirs, class TheirOptions>
void expect_same_path(const OptimizerOptions& options, double rate, TheirOptions decaying,
                      TheirOptions plain) {
  torch::manual_seed(3);
  TwoLayers ours, theirs;
  for (size_t i = 0; i < ours->parameters().size(); ++i)
    theirs->parameters()[i].data().copy_(ours->parameters()[i].data());
  FlatParameters flat(*ours);
  Optimizer optimizer(flat, options);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{theirs->a->weight, theirs->b->weight},
                      std::make_unique<TheirOptions>(decaying));
  groups.emplace_back(std::vector<Tensor>{theirs->a->bias, theirs->b->bias},
                      std::make_unique<TheirOptions>(plain));
  Theirs reference(groups, plain);
  for (int step = 0; step < 20; ++step) {
    const Tensor x = torch::randn({16, 12}), y = torch::randn({16, 3});
    flat.zero_gradients();
    torch::mse_loss(ours(x), y).backward();
    optimizer.step(rate, step);
    reference.zero_grad();
    torch::mse_loss(theirs(x), y).backward();
    reference.step();
  }
  for (size_t i = 0; i < ours->parameters().size(); ++i)
    EXPECT_LT((ours->parameters()[i] - theirs->parameters()[i]).abs().max().item<float>(),
              20 * 8 * 1.2e-7f);  // steps x roundings x eps
}

TEST(Optimizer, AdamWFollowsLibtorch) {
  using O = torch::optim::AdamWOptions;
  expect_same_path<torch::optim::AdamW, O>({.kind = "adamw", .weight_decay = 0.1}, 1e-2,
                                           O(1e-2).weight_decay(0.1), O(1e-2).weight_decay(0));
}

TEST(Optimizer, NesterovFollowsLibtorch) {
  using O = torch::optim::SGDOptions;
  const O base = O(5e-2).momentum(0.9).nesterov(true);
  expect_same_path<torch::optim::SGD, O>({.kind = "sgd", .weight_decay = 0.01, .momentum = 0.9}, 5e-2,
                                         O(base).weight_decay(0.01), base);
}

// All singular values near 1 and the singular vectors of the matrix itself, whatever its shape.
TEST(Optimizer, OrthogonalizedKeepsTheDirectionsAndLosesTheLengths) {
  torch::manual_seed(5);
  for (const auto& [rows, columns] : {std::pair{40, 40}, {32, 96}, {96, 32}}) {
    const Tensor matrix = torch::randn({rows, columns}) * torch::logspace(-1, 2, columns);
    const auto [u, s, v] = torch::linalg_svd(matrix, false, c10::nullopt);
    const Tensor inside = torch::mm(torch::mm(u.t(), orthogonalized(matrix)), v.t());  // diagonal
    const Tensor lengths = inside.diagonal().slice(0, 0, 24);  // the short ones may lag behind
    EXPECT_GT(lengths.min().item<float>(), 0.6f) << rows << " x " << columns;
    EXPECT_LT(lengths.max().item<float>(), 1.3f) << rows << " x " << columns;
    EXPECT_LT((inside - inside.diagonal().diag()).abs().max().item<float>(), 1e-3f);
  }
}

// Matrices of 12 x 8 and 8 x 3 are no inner ones: there muon is adamw.
TEST(Optimizer, MuonIsAdamWOutsideTheInnerMatrices) {
  using O = torch::optim::AdamWOptions;
  expect_same_path<torch::optim::AdamW, O>({.kind = "muon", .weight_decay = 0.1}, 1e-2,
                                           O(1e-2).weight_decay(0.1), O(1e-2).weight_decay(0));
}

TEST(Optimizer, MuonMovesAnInnerMatrixByAnOrthogonalStepOfAdamsSize) {
  torch::manual_seed(6);
  torch::nn::Linear layer(torch::nn::LinearOptions(64, 48).bias(false));
  const Tensor before = layer->weight.detach().clone();
  FlatParameters flat(*layer);
  flat.gradients().copy_(torch::randn({48 * 64}) * 1e3);
  const Tensor gradient = flat.gradients().clone().view({48, 64});
  Optimizer(flat, {.kind = "muon", .weight_decay = 0.5}).step(1e-2, 0);
  const Tensor expected =
      before * (1 - 1e-2 * 0.5) - 1e-2 * 0.2 * 8 * orthogonalized(gradient);  // sqrt(64) = 8
  EXPECT_LT((layer->weight - expected).abs().max().item<float>(), 1e-6f);
}

TEST(FlatParameters, OnlyMatricesDecayAndTheNetworkSeesTheVector) {
  TwoLayers network;
  FlatParameters flat(*network);
  EXPECT_EQ(flat.size(), 12 * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(flat.decayed(), 12 * 8 + 8 * 3);
  {
    const torch::NoGradGuard no_grad;
    flat.values().fill_(0.5);
  }
  EXPECT_EQ(network->b->bias[0].item<float>(), 0.5f);
  network(torch::ones({1, 12})).sum().backward();
  EXPECT_GT(flat.gradient_norm(), 0);
  flat.clip(0.25);
  EXPECT_NEAR(flat.gradient_norm(), 0.25, 1e-5);
}

TEST(MovingAverage, IsShownOnlyAsLongAsAskedFor) {
  TwoLayers network;
  FlatParameters flat(*network);
  MovingAverage average(flat, 0.9);
  const Tensor before = flat.values().clone();
  {
    const torch::NoGradGuard no_grad;
    average.values().zero_();
  }
  {
    const MovingAverage::Shown shown(average);
    EXPECT_EQ(network->a->weight.abs().sum().item<float>(), 0);
  }
  EXPECT_TRUE(torch::equal(flat.values(), before));
}

// ---- event file and log

// What TensorBoard's reader does: checks both sums of every record and gives the data.
std::vector<std::string> records_of(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<std::string> out;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t sum = 0;
    EXPECT_LE(at + 12, bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&sum, bytes.data() + at + 8, 4);
    EXPECT_EQ(sum, masked_crc32c(std::string_view(bytes).substr(at, 8)));
    out.push_back(bytes.substr(at + 12, length));
    std::memcpy(&sum, bytes.data() + at + 12 + length, 4);
    EXPECT_EQ(sum, masked_crc32c(out.back()));
    at += 16 + length;
  }
  return out;
}

TEST(EventFile, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

TEST(EventFile, ReadsBackAsRecordsWithVersionAndScalars) {
  const std::string folder = fresh_path("train_events");
  std::string path;
  {
    EventFile events(folder);
    path = events.path();
    events.scalar("train/loss", 300, 0.25);
  }
  const auto records = records_of(path);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0], HasSubstr(std::string("\x1a\x0d") + "brain.Event:2"));  // field 3, 13 bytes
  // step 300 = 0xac 0x02 as field 2; tag as field 1 and 0.25f as field 2 of the value.
  EXPECT_THAT(records[1], HasSubstr("\x10\xac\x02"));
  EXPECT_THAT(records[1],
              HasSubstr(std::string("\x0a\x0a") + "train/loss" + std::string("\x15\x00\x00\x80\x3e", 5)));
}

TEST(RunLog, AResumedRunDropsTheRowsBehindItAndTheCutLine) {
  const std::string folder = fresh_path("train_log");
  make_directories(folder);
  write_file_atomically(folder + "/log.jsonl", "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st");
  { RunLog(folder, 2).write({{"step", 3}, {"train", {{"loss", 0.5}}}}); }
  EXPECT_EQ(read_file(folder + "/log.jsonl"),
            "{\"step\":1}\n{\"step\":2}\n{\"step\":3,\"train\":{\"loss\":0.5}}\n");
}

// ---- the loop, on numbers that need no image

// Learns which of three random directions an example follows.
class DirectionsTask : public TrainTask {
 public:
  explicit DirectionsTask(uint64_t seed) {
    torch::manual_seed(static_cast<int64_t>(seed));
    network_ = TwoLayers();
  }
  torch::nn::Module& network() override { return *network_; }
  int64_t examples() const override { return 64; }
  std::string score() const override { return "negative_loss"; }
  void load(Batch& batch) const override {
    const auto count = static_cast<int64_t>(batch.indices.size());
    batch.pixels = torch::empty({count, 12});
    batch.labels = torch::empty({count}, torch::kInt64);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < 12; ++j) {
        batch.pixels[i][j] =
            std::sin(1.7 * static_cast<double>(batch.indices[i]) + static_cast<double>(j * batch.epoch + j));
        batch.labels[i] = batch.indices[i] % 3;
      }
  }
  Losses losses(const Batch& batch) override {
    if (before_step) before_step(batch.step);
    const Tensor loss = torch::nn::functional::cross_entropy(network_(batch.pixels), batch.labels);
    if (batch.step == poisoned_step) return {loss, {{"fit", loss}, {"penalty", loss * NAN}}};
    return {loss, {{"fit", loss}}};
  }
  Scores validate(WorkerGroup&) override {
    if (in_validation) in_validation();
    const torch::NoGradGuard no_grad;
    Batch all;
    all.indices.resize(64);
    std::iota(all.indices.begin(), all.indices.end(), 0);
    load(all);
    return {{"negative_loss",
             -torch::nn::functional::cross_entropy(network_(all.pixels), all.labels).item<double>()}};
  }

  std::function<void(int64_t)> before_step;
  std::function<void()> in_validation;
  int64_t poisoned_step = -1;

 private:
  TwoLayers network_{nullptr};
};

TrainOptions six_steps(const std::string& out) {
  TrainOptions o;
  o.out = out;
  o.epochs = 2;  // 64 examples in batches of 16: 4 steps per epoch
  o.max_steps = 6;
  o.checkpoint_every = 2;
  o.schedule.lr = 0.05;
  return o;
}

TrainReport run(DirectionsTask& task, const TrainOptions& options, const Context& context = {}) {
  WorkerGroup alone;
  TrainOptions o = options;
  return train(task, options, 16, settings_that_decide(fields(o)), alone, context);
}

// Everything the run left behind, weights, moments and average; the same text = the same bits.
std::string final_state(const std::string& folder) {
  return read_file(folder + "/checkpoint.safetensors") + read_file(folder + "/best.safetensors");
}

std::string uninterrupted() {
  const std::string folder = fresh_path("train_whole");
  DirectionsTask task(1);
  run(task, six_steps(folder));
  return final_state(folder);
}

TEST(Train, ResumingAfterACancelEndsWithTheSameBits) {
  const std::string folder = fresh_path("train_canceled");
  TrainOptions options = six_steps(folder);
  {
    Context context;
    DirectionsTask task(1);
    task.before_step = [&](int64_t step) {
      if (step == 2) context.cancel->cancel();
    };
    EXPECT_THAT(message_of([&] { run(task, options, context); }, 1), HasSubstr("stopped at step 3 of 6"));
  }
  options.resume = true;
  DirectionsTask task(99);  // its first weights must not matter
  const TrainReport report = run(task, options);
  EXPECT_EQ(report.first_step, 3);
  EXPECT_EQ(final_state(folder), uninterrupted());
}

// The validations follow steps 4 and 6. One that is cut off is the first thing the resumed run does; no step
// is done twice.
TEST(Train, ACancelWithinAValidationLosesNothing) {
  for (const int64_t validation : {1, 2}) {
    const std::string folder = fresh_path("train_unvalidated");
    TrainOptions options = six_steps(folder);
    options.checkpoint_every = 100;
    const int64_t steps_done = validation == 1 ? 4 : 6;
    {
      Context context;
      DirectionsTask task(1);
      task.in_validation = [&, count = 0]() mutable {
        if (++count == validation) context.cancel->cancel();
        stop_if_canceled(context);
      };
      EXPECT_THAT(message_of([&] { run(task, options, context); }, 1), HasSubstr("--resume"));
    }
    options.resume = true;
    DirectionsTask task(99);
    EXPECT_EQ(run(task, options).first_step, steps_done);
    EXPECT_EQ(final_state(folder), uninterrupted()) << "validation " << validation;
  }
}

// At the last step of an epoch the validation waits for the resumed run.
TEST(Train, ACancelBeforeAValidationPutsItOff) {
  const std::string folder = fresh_path("train_put_off");
  TrainOptions options = six_steps(folder);
  int validations = 0;
  {
    Context context;
    DirectionsTask task(1);
    task.before_step = [&](int64_t step) {
      if (step == 3) context.cancel->cancel();
    };
    task.in_validation = [&] { ++validations; };
    EXPECT_THAT(message_of([&] { run(task, options, context); }, 1), HasSubstr("stopped at step 4 of 6"));
  }
  EXPECT_EQ(validations, 0);
  options.resume = true;
  DirectionsTask task(99);
  task.in_validation = [&] { ++validations; };
  run(task, options);
  EXPECT_EQ(validations, 2);
  EXPECT_EQ(final_state(folder), uninterrupted());
}

// Runs this program again, only with the test named, as it would have been started by hand.
std::vector<std::string> this_program_with(const std::string& test) {
  return {"--gtest_filter=" + test, "--gtest_also_run_disabled_tests"};
}

TEST(Train, DISABLED_DiesAtStepFive) {
  DirectionsTask task(1);
  task.before_step = [](int64_t step) {
    if (step == 5) ::raise(SIGKILL);
  };
  run(task, six_steps(std::getenv("AHA_TEST_FOLDER")));
}

TEST(Train, ResumingAfterKillNineEndsWithTheSameBits) {
  const std::string folder = fresh_path("train_killed");
  ::setenv("AHA_TEST_FOLDER", folder.c_str(), 1);
  EXPECT_THAT(message_of([] { run_workers(1, this_program_with("Train.DISABLED_DiesAtStepFive"), {}); }, 1),
              HasSubstr("worker 0 of 1 was ended by signal 9"));
  TrainOptions options = six_steps(folder);
  options.resume = true;
  DirectionsTask task(99);
  EXPECT_EQ(run(task, options).first_step, 4);
  EXPECT_EQ(final_state(folder), uninterrupted());
}

TEST(Train, ANewRunDoesNotOverwriteAnOldOneAndOtherSettingsDoNotResume) {
  const std::string folder = fresh_path("train_again");
  TrainOptions options = six_steps(folder);
  DirectionsTask task(1);
  run(task, options);
  EXPECT_THAT(message_of([&] { run(task, options); }), HasSubstr("already holds a run"));
  options.resume = true;
  options.schedule.lr = 0.06;
  EXPECT_THAT(message_of([&] { run(task, options); }), HasSubstr("lr = 0.05, found 0.06"));
}

TEST(Train, ATermThatIsNotANumberStopsWithItsNameAndStep) {
  DirectionsTask task(1);
  task.poisoned_step = 3;
  EXPECT_THAT(message_of([&] { run(task, six_steps(fresh_path("train_poisoned"))); }, 1),
              HasSubstr("training diverged at step 3: the term penalty is nan"));
}

TEST(Train, AnEpochSeesEveryExampleOnceInAnOrderOfItsOwn) {
  auto first = shuffled(64, 5, 0);
  EXPECT_EQ(first, shuffled(64, 5, 0));
  EXPECT_NE(first, shuffled(64, 5, 1));
  EXPECT_NE(first, shuffled(64, 6, 0));
  std::sort(first.begin(), first.end());
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(first[i], i);
}

// ---- workers

TEST(Train, DISABLED_AsAWorker) {
  EXPECT_EQ(own_arguments(), this_program_with("Train.DISABLED_AsAWorker"));
  const auto group = WorkerGroup::from_environment(60);
  DirectionsTask task(1 + group->rank());  // the leader's first weights count
  if (std::getenv("AHA_TEST_DIES") && group->rank() == 1)
    task.before_step = [](int64_t step) {
      if (step == 3) ::raise(SIGKILL);
    };
  TrainOptions options = six_steps(std::getenv("AHA_TEST_FOLDER"));
  options.resume = std::getenv("AHA_TEST_RESUME") != nullptr;
  try {
    train(task, options, 16, settings_that_decide(fields(options)), *group, {});
  } catch (const Error& error) {
    if (group->leader()) write_file_atomically(options.out + "/message", error.what());
    std::_Exit(1);
  }
}

void expect_close_to_one_worker(const std::string& folder) {
  const std::string alone = fresh_path("train_alone");
  DirectionsTask task(1), other(2);
  run(task, six_steps(alone));
  const auto tensors = [](DirectionsTask& t) {
    Checkpoint c;
    for (const auto& item : t.network().named_parameters())
      c.tensors.emplace_back("network." + item.key(), item.value());
    return c;
  };
  ASSERT_TRUE(read_checkpoint(alone + "/checkpoint.safetensors", tensors(task)));
  ASSERT_TRUE(read_checkpoint(folder + "/checkpoint.safetensors", tensors(other)));
  const auto one = tensors(task).tensors, two = tensors(other).tensors;
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_LT((one[i].second - two[i].second).abs().max().item<double>(), 1e-5) << one[i].first;
}

TEST(Workers, TwoTrainLikeOneWithTheSameGlobalBatch) {
  const std::string folder = fresh_path("train_two");
  ::setenv("AHA_TEST_FOLDER", folder.c_str(), 1);
  run_workers(2, this_program_with("Train.DISABLED_AsAWorker"), {});
  expect_close_to_one_worker(folder);
}

TEST(Workers, ADeadOneEndsTheRunWithAMessageAndTheRunResumes) {
  const std::string folder = fresh_path("train_dead");
  ::setenv("AHA_TEST_FOLDER", folder.c_str(), 1);
  ::setenv("AHA_TEST_DIES", "1", 1);
  EXPECT_THAT(message_of([] { run_workers(2, this_program_with("Train.DISABLED_AsAWorker"), {}); }, 1),
              HasSubstr("worker 1 of 2 was ended by signal 9"));
  ::unsetenv("AHA_TEST_DIES");
  EXPECT_THAT(read_file(folder + "/message"), HasSubstr("worker 0 of 2 lost contact with the others"));
  ::setenv("AHA_TEST_RESUME", "1", 1);
  run_workers(2, this_program_with("Train.DISABLED_AsAWorker"), {});
  ::unsetenv("AHA_TEST_RESUME");
  expect_close_to_one_worker(folder);
}

TEST(Workers, AnEnvironmentThatMakesNoSenseIsRefused) {
  ::setenv("RANK", "0", 1);
  ::setenv("WORLD_SIZE", "two", 1);
  EXPECT_THAT(message_of([] { WorkerGroup::from_environment(1); }), HasSubstr("WORLD_SIZE"));
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
}

// ---- classifiers

FitOptions small_fit(const std::string& out) {
  FitOptions o;
  o.arch = "vit_mini_8";
  o.network = "width=16:depth=1:heads=2:mlp_hidden=32";
  o.data = "cifar10:sample";
  o.train.out = out;
  o.train.epochs = 1;
  o.train.max_steps = 4;
  return o;
}

TEST(Fit, LeavesAModelDirectoryThatLoadsAndAnswersAsMeasured) {
  const std::string folder = fresh_path("train_fit");
  FitOptions options = small_fit(folder);
  options.test = "cifar10:sample";
  Context context;
  context.batch_size = 32;
  WorkerGroup alone;
  const FitReport report = fit(options, alone, context);
  EXPECT_EQ(report.train_images, 240);
  EXPECT_EQ(report.held_out_images, 60);

  const auto model = load_classifier(folder, {}, context);
  EXPECT_EQ(model->info().class_names.at(3), "cat");
  const auto data = open_dataset("cifar10:sample");
  int64_t right = 0;
  const torch::NoGradGuard no_grad;
  for (int64_t i = 0; i < data->size(); ++i) {
    const Tensor pixels =
        input_from_image(data->image(i), model->info().input).unsqueeze(0);  // (1, 3, 32, 32)
    right += model->logits(pixels).argmax(1).item<int64_t>() == data->label(i);
  }
  // One image may fall on the other side: the batch is summed in another order.
  EXPECT_NEAR(static_cast<double>(right) / 300, report.test_accuracy, 1.5 / 300);
}

TEST(Fit, DistillsFromATeacherAndFineTunesFromIt) {
  const std::string teacher = fresh_path("train_teacher"), student = fresh_path("train_student");
  Context context;
  context.batch_size = 32;
  WorkerGroup alone;
  fit(small_fit(teacher), alone, context);
  FitOptions options = small_fit(student);
  options.teacher = options.init = teacher;
  options.train.schedule.lr =
      0;  // stays what it was: the same answers as the teacher, nothing left to learn from it
  options.train.log_every = 1;
  fit(options, alone, context);
  const std::string log = read_file(student + "/log.jsonl");
  const auto row = nlohmann::json::parse(log.substr(0, log.find('\n')));
  EXPECT_NEAR(row.at("train").at("distillation").get<double>(), 0, 1e-6);
  EXPECT_GT(row.at("train").at("cross_entropy").get<double>(), 0.1);
}

// An untrained network whose head is silent gives every class a tenth, whatever it sees: the loss is log 10
// for any mixture of labels whose shares sum to one.
TEST(Fit, SharesOfMixedLabelsSumToOne) {
  const std::string folder = fresh_path("train_mixed");
  FitOptions options = small_fit(folder);
  options.augment.cutmix_share = 1;
  options.label_smoothing = 0;
  options.train.schedule.lr = 0;
  options.train.log_every = 1;
  Context context;
  context.batch_size = 32;
  WorkerGroup alone;
  fit(options, alone, context);
  const std::string log = read_file(folder + "/log.jsonl");
  const auto row = nlohmann::json::parse(log.substr(0, log.find('\n')));
  EXPECT_NEAR(row.at("train").at("cross_entropy").get<double>(), std::log(10.0),
              0.02);  // the head begins at 0.02
}

TEST(Fit, ATransformerLearnsFromAMimeticStartByMuon) {
  const std::string folder = fresh_path("train_mimetic");
  FitOptions options = small_fit(folder);
  options.arch = "vit_mini_8";
  options.network = "width=32:depth=2:heads=1:mlp_hidden=64";
  options.start = "mimetic";
  options.train.optimizer.kind = "muon";
  options.train.epochs = 20;
  options.train.schedule.lr = 0.01;
  options.train.max_steps = 0;
  options.train.log_every = 1;
  options.augment.mask_share = 0;
  Context context;
  context.batch_size = 32;
  WorkerGroup alone;
  fit(options, alone, context);
  std::istringstream lines(read_file(folder + "/log.jsonl"));
  std::vector<double> losses;
  for (std::string line; std::getline(lines, line);)
    if (const auto row = nlohmann::json::parse(line); row.contains("train"))
      losses.push_back(row["train"]["loss"]);
  ASSERT_EQ(losses.size(), 140u);
  const auto mean = [&](size_t first) {
    return std::accumulate(losses.begin() + first, losses.begin() + first + 7, 0.0) / 7;
  };
  EXPECT_LT(mean(133), mean(0) - 0.3);  // epochs
}

TEST(Fit, WrongRequestsAreNamed) {
  WorkerGroup alone;
  FitOptions options = small_fit(fresh_path("train_wrong"));
  options.start = "mimetic";
  options.arch = "convnext_mini";
  options.network = "";
  EXPECT_THAT(message_of([&] { fit(options, alone, {}); }), HasSubstr("expected normal for a convnext"));
  options = small_fit(fresh_path("train_wrong"));
  options.network = "widht=3";
  EXPECT_THAT(message_of([&] { fit(options, alone, {}); }), HasSubstr("widht"));
  options = small_fit("");
  EXPECT_THAT(message_of([&] { fit(options, alone, {}); }), HasSubstr("--out"));
}

}  // namespace
}  // namespace aha
