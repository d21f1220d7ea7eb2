#include "aha/train/trainer.h"

#include "aha/tensor/torch.h"

#include <cmath>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/base/timer.h"
#include "aha/data/prefetch.h"
#include "aha/nn/module_state.h"
#include "aha/train/checkpoint.h"
#include "aha/train/run_folder.h"
#include "aha/train/run_log.h"

namespace aha {
namespace {

constexpr uint64_t kShufflePurpose = 0x73687566;

// Which examples this worker sees at a step; epochs are permuted once each.
class Order {
 public:
  Order(int64_t examples, int64_t batch, uint64_t seed, const WorkerGroup& group)
      : examples_(examples), batch_(batch), seed_(seed), share_(batch / group.size()), rank_(group.rank()) {}
  int64_t steps_per_epoch() const { return examples_ / batch_; }

  Batch at(int64_t step) {
    Batch out;
    out.step = step;
    out.epoch = step / steps_per_epoch();
    if (out.epoch != epoch_) permutation_ = shuffled(examples_, seed_, epoch_ = out.epoch);
    const auto begin = permutation_.begin() + step % steps_per_epoch() * batch_ + rank_ * share_;
    out.indices.assign(begin, begin + share_);
    return out;
  }

 private:
  int64_t examples_, batch_;
  uint64_t seed_;
  int64_t share_, rank_, epoch_ = -1;
  std::vector<int64_t> permutation_;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

NamedTensors named_state(const torch::nn::Module& network, const std::string& prefix = "") {
  NamedTensors out;
  for (const auto& item : network.named_parameters()) out.emplace_back(prefix + item.key(), item.value());
  for (const auto& item : network.named_buffers()) out.emplace_back(prefix + item.key(), item.value());
  return out;
}

constexpr const char* kHowToContinue = "the same command with --resume continues";

std::string trouble_in(const Losses& losses, double max_loss) {
  const auto bad = [&](const Tensor& value) { return !(std::abs(value.item<double>()) <= max_loss); };
  const auto text = [](const Tensor& value) { return fmt::format("{:g}", value.item<double>()); };
  for (const auto& [name, value] : losses.terms)
    if (bad(value)) return fmt::format("the term {} is {}", name, text(value));
  return bad(losses.total) ? fmt::format("the loss is {}", text(losses.total)) : "";
}

// Gradients of all workers averaged; returns whether any worker wants to stop. One message carries both, so
// that all stop at the same step.
bool average_gradients(FlatParameters& parameters, WorkerGroup& group, bool stop, bool trouble) {
  if (group.size() == 1) return stop;
  Tensor bucket = torch::cat({parameters.gradients(), torch::tensor({stop ? 1.f : 0.f, trouble ? 1.f : 0.f},
                                                                    parameters.gradients().options())});
  group.sum(bucket);
  parameters.gradients().copy_(bucket.narrow(0, 0, parameters.size())).div_(group.size());
  const Tensor flags = bucket.narrow(0, parameters.size(), 2).cpu();
  if (!trouble && flags[1].item<float>() > 0)
    throw work_error("another worker's loss diverged; its own message says where");
  return flags[0].item<float>() > 0;
}

// One run: its state, its files and what is done with them.
class Run {
 public:
  Run(TrainTask& task, const TrainOptions& options, int64_t global_batch, nlohmann::json settings,
      WorkerGroup& group, const Context& context)
      : task_(task),
        options_(options),
        batch_(global_batch),
        settings_(std::move(settings)),
        group_(group),
        context_(context),
        parameters_(task.network()),
        optimizer_(parameters_, options.optimizer),
        average_(parameters_, options.average) {}

  int64_t done() const { return step_; }

  // The state of the run in --out, or that of the leader's fresh network.
  void begin(int64_t total) {
    total_ = total;
    group_.broadcast(parameters_.values());
    average_.values().copy_(parameters_.values());
    if (options_.resume) restore();
    if (group_.leader()) log_ = std::make_unique<RunLog>(options_.out, step_);
    report_.steps = total;
    report_.first_step = step_;
    timer_ = Timer();
  }

  // Returns whether the run is to stop here.
  bool step(const Batch& batch) {
    const Timer timer;
    rate_ = learning_rate(options_.schedule, step_, total_);
    parameters_.zero_gradients();
    const Losses losses = task_.losses(batch);
    const std::string trouble = trouble_in(losses, options_.max_loss);
    if (trouble.empty()) losses.total.backward();
    const bool stop = average_gradients(parameters_, group_, context_.cancel->canceled(), !trouble.empty());
    if (!trouble.empty())
      throw work_error("training diverged at step {}: {}; the last checkpoint is kept", step_, trouble);
    const double norm = parameters_.gradient_norm();
    if (!std::isfinite(norm))
      throw work_error(
          "training diverged at step {}: the gradient of {} is not finite; the last checkpoint is kept",
          step_, parameters_.first_not_finite(parameters_.gradients()));
    if (options_.clip > 0) parameters_.clip(options_.clip);
    optimizer_.step(rate_, step_);
    average_.update(step_);
    ++step_;

    loss_ = losses.total.item<double>();
    meters_.add("loss", loss_);
    for (const auto& [name, value] : losses.terms) meters_.add(name, value.item<double>());
    meters_.add("gradient_norm", norm);
    training_seconds_ += timer.seconds();
    return stop;
  }

  double loss() const { return loss_; }

  void log(int64_t epoch) {
    const Scores means = meters_.means(group_);
    remark_ = task_.remark(means);
    meters_.reset();
    if (!log_) return;
    log_->write({{"step", step_},
                 {"epoch", epoch},
                 {"learning_rate", rate_},
                 {"images_per_second", speed()},
                 {"train", means}});
  }

  // A validation takes long, so the step before it is saved first, together with the debt: a Ctrl-C loses
  // neither.
  void owe_validation(int64_t epochs_done) { owed_epoch_ = epochs_done; }

  void validate_if_owed() {
    if (owed_epoch_ == 0) return;
    validate(owed_epoch_);
    owed_epoch_ = 0;
    save();
  }

  void save() {
    if (group_.leader()) write_checkpoint(checkpoint_file(), checkpoint());
  }

  // The best weights into the network.
  TrainReport finish() {
    group_.barrier();  // the leader's file is there
    read_checkpoint(best_file(), {named_state(task_.network()), {}});
    task_.network().eval();
    report_.best = best_;
    report_.last = last_;
    report_.best_step = best_step_;
    report_.seconds = timer_.seconds();
    report_.images_per_second = speed();
    return report_;
  }

 private:
  std::string checkpoint_file() const { return options_.out + "/checkpoint.safetensors"; }
  std::string best_file() const { return options_.out + "/best.safetensors"; }

  void validate(int64_t epochs_done) {
    const MovingAverage::Shown shown(average_);
    task_.network().eval();
    last_ = task_.validate(group_);
    task_.network().train();
    const double score = last_.at(task_.score());
    if (best_step_ == 0 || score > best_.at(task_.score())) {
      best_ = last_;
      best_step_ = step_;
      if (group_.leader())
        write_checkpoint(best_file(), {named_state(task_.network()), {{"step", step_}, {"scores", best_}}});
    }
    if (!log_) return;
    log_->write({{"step", step_}, {"epoch", epochs_done}, {"validation", last_}});
    const double left = static_cast<double>(total_ - step_) /
                        static_cast<double>(std::max<int64_t>(1, step_ - report_.first_step)) *
                        timer_.seconds();
    spdlog::info("epoch {}/{}: loss {:.3f}{}, {} {:.4f} (best {:.4f}), {:.0f} images/s, {} left", epochs_done,
                 options_.epochs, loss_, remark_.empty() ? "" : " (" + remark_ + ")", task_.score(), score,
                 best_.at(task_.score()), speed(), clock_text(left));
  }

  Checkpoint checkpoint() {
    Checkpoint c{named_state(task_.network(), "network."), {}};
    for (const auto& [name, tensor] : optimizer_.state()) c.tensors.emplace_back("optimizer." + name, tensor);
    c.tensors.emplace_back("average", average_.values());
    c.state = {{"step", step_}, {"best_step", best_step_},   {"best", best_},
               {"last", last_}, {"owed_epoch", owed_epoch_}, {"settings", settings_}};
    return c;
  }

  void restore() {
    const auto state = read_checkpoint(checkpoint_file(), checkpoint());
    if (!state) return;
    check_same_settings(state->at("settings"), settings_, checkpoint_file());
    step_ = state->at("step");
    best_step_ = state->at("best_step");
    best_ = state->at("best").get<Scores>();
    last_ = state->at("last").get<Scores>();
    owed_epoch_ = state->value("owed_epoch", int64_t{0});
    if (group_.leader()) spdlog::info("continuing {} at step {} of {}", options_.out, step_, total_);
  }

  double speed() const {
    return training_seconds_ > 0
               ? static_cast<double>((step_ - report_.first_step) * batch_) / training_seconds_
               : 0;
  }

  TrainTask& task_;
  const TrainOptions& options_;
  const int64_t batch_;
  const nlohmann::json settings_;
  WorkerGroup& group_;
  const Context& context_;

  FlatParameters parameters_;
  Optimizer optimizer_;
  MovingAverage average_;
  int64_t step_ = 0;        // steps done
  int64_t best_step_ = 0;   // 0 = not yet validated
  int64_t owed_epoch_ = 0;  // whose validation is not done yet; 0 = none
  Scores best_, last_;

  int64_t total_ = 0;
  double rate_ = 0, loss_ = 0, training_seconds_ = 0;
  Meters meters_;
  std::string remark_;
  std::unique_ptr<RunLog> log_;
  TrainReport report_;
  Timer timer_;
};

}  // namespace

Fields fields(TrainOptions& o) {
  return Fields()
      .add("out", o.out, "folder of the run; a model directory at the end")
      .add("epochs", o.epochs, "passes over the data")
      .range(1, 100000)
      .add("max-steps", o.max_steps, "end after so many steps; 0 = all epochs")
      .range(0, 1e12)
      .add("checkpoint-every", o.checkpoint_every,
           "steps between checkpoints; there is one after every epoch too")
      .range(1, 1e9)
      .add("log-every", o.log_every, "steps between rows of the log")
      .range(1, 1e9)
      .add("validate-every", o.validate_every, "epochs between validations")
      .range(1, 100000)
      .add("resume", o.resume, "continue the run in --out, bit for bit")
      .add("overwrite", o.overwrite,
           "begin anew where a run was, or write into a folder that holds files of others")
      .add("strict", o.strict, "stop at the first image that cannot be read instead of leaving it out")
      .add("workers", o.workers, "processes on this machine, each with a share of every batch")
      .range(1, 256)
      .add("worker-timeout", o.worker_timeout_s, "seconds until a silent worker counts as lost")
      .range(1, 86400)
      .add("clip", o.clip, "longest gradient; 0 = any")
      .range(0, 1e9)
      .add("average", o.average, "memory of the moving average that is kept; 0 = none")
      .range(0, 0.999999)
      .add("max-loss", o.max_loss, "a larger loss counts as divergence")
      .range(0, 1e30)
      .nest("", fields(o.optimizer))
      .nest("", fields(o.schedule));
}

void stop_if_canceled(const Context& context) {
  if (context.cancel->canceled())
    throw Error(ErrorKind::kCanceled, fmt::format("stopped; {}", kHowToContinue));
}

HeldOutSplit held_out_split(int64_t examples, int64_t wanted) {
  constexpr uint64_t kSeed = 0x686f6c64;
  const std::vector<int64_t> order = Rng(kSeed).permutation(examples);
  const int64_t held = std::min(wanted, examples / 5);
  HeldOutSplit split{{order.begin() + held, order.end()}, {order.begin(), order.begin() + held}};
  std::sort(split.training.begin(), split.training.end());
  return split;
}

std::vector<int64_t> shuffled(int64_t examples, uint64_t seed, int64_t epoch) {
  return Rng(seed, stream_id({kShufflePurpose, static_cast<uint64_t>(epoch)})).permutation(examples);
}

int64_t total_steps(const TrainOptions& options, int64_t examples, int64_t global_batch) {
  const int64_t steps = options.epochs * std::max<int64_t>(1, examples / global_batch);
  return options.max_steps > 0 ? std::min(steps, options.max_steps) : steps;
}

nlohmann::json settings_that_decide(const Fields& fields) {
  nlohmann::json settings = json_from_fields(fields);
  for (const char* name : {"out", "resume", "overwrite", "strict", "workers", "worker-timeout",
                           "checkpoint-every", "log-every", "search"})
    settings.erase(name);
  return settings;
}

TrainReport train(TrainTask& task, const TrainOptions& options, int64_t global_batch,
                  const nlohmann::json& settings, WorkerGroup& group, const Context& context) {
  if (global_batch % group.size() != 0)
    throw input_error("--batch-size {}: expected a multiple of the {} workers", global_batch, group.size());
  if (global_batch > task.examples())
    throw input_error("--batch-size {}: the data set has only {} examples to train on", global_batch,
                      task.examples());
  if (!options.resume && group.leader() && std::filesystem::exists(options.out + "/checkpoint.safetensors")) {
    if (!options.overwrite)
      throw input_error(
          "{} already holds a run; --resume continues it, --overwrite begins anew, so does another --out",
          printable(options.out, 300));
    clear_run_folder(options.out);
  }
  if (group.leader() && !task.description().empty()) spdlog::info("{}", task.description());
  make_directories(options.out);

  Order order(task.examples(), global_batch, context.seed, group);
  const int64_t epoch_steps = order.steps_per_epoch();
  const int64_t total = total_steps(options, task.examples(), global_batch);
  task.network().train();
  Run run(task, options, global_batch, settings, group, context);
  run.begin(total);
  run.validate_if_owed();

  Prefetch<Batch> batches(total - run.done(), 1, 3, [&, first = run.done()](int64_t i) {
    Batch batch = order.at(first + i);
    task.load(batch);
    return batch;
  });
  Context leader_only = context;
  leader_only.quiet = context.quiet || !group.leader();
  auto progress = leader_only.progress("train", (total - run.done()) * global_batch);

  while (run.done() < total) {
    const Batch batch = *batches.next();
    const bool stop = run.step(batch);
    progress.advance(global_batch, fmt::format("loss {:.3f}", run.loss()));

    const bool last = run.done() == total, epoch_ends = last || run.done() % epoch_steps == 0;
    if (last || run.done() % options.log_every == 0) run.log(batch.epoch);
    if (last || (epoch_ends && (batch.epoch + 1) % options.validate_every == 0))
      run.owe_validation(batch.epoch + 1);
    if (stop || epoch_ends || run.done() % options.checkpoint_every == 0) run.save();
    if (stop && !last)
      throw Error(ErrorKind::kCanceled,
                  fmt::format("stopped at step {} of {}; {}", run.done(), total, kHowToContinue));
    run.validate_if_owed();
  }
  return run.finish();
}

}  // namespace aha
