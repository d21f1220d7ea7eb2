#include "aha/train/classifier_trainer.h"

#include <torch/nn/functional/loss.h>

#include "aha/tensor/torch.h"

#include <unordered_set>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/rng.h"
#include "aha/data/dataset.h"
#include "aha/image/resize_crop.h"
#include "aha/networks/catalog.h"
#include "aha/nn/module_state.h"
#include "aha/train/run_folder.h"

namespace aha {
namespace {

constexpr int64_t kOwnBatch = 128, kCheckBatch = 250;
constexpr std::array<double, 3> kCifarMean = {0.4914, 0.4822, 0.4465}, kCifarStd = {0.2470, 0.2435, 0.2616};

// A network to be trained: its architecture's sizes with the changes that the user gave.
std::shared_ptr<Network> fresh_network(const FitOptions& options, int classes, uint64_t seed) {
  const auto& architecture = architecture_named(options.arch);
  const auto& family = family_of(architecture);
  auto config = family.changed(architecture.config, options.network, "--network");
  config["classes"] = classes;
  auto network = family.make(config, "--network");
  network->initialize_from(seed, options.start);
  network->set_layer_scale(options.layer_scale);
  return network;
}

// Takes the tensors of `table` that have a place here; returns how many.
int64_t take_matching(torch::nn::Module& network, const TensorTable& table) {
  const torch::NoGradGuard no_grad;
  int64_t taken = 0;
  const auto take = [&](const std::string& name, Tensor& own) {
    if (!table.has(name) || table.at(name).shape != own.sizes().vec()) return;
    own.copy_(float_tensor_from_view(table.at(name)));
    ++taken;
  };
  for (auto& item : network.named_parameters()) take(item.key(), item.value());
  for (auto& item : network.named_buffers()) take(item.key(), item.value());
  return taken;
}

int classes_of(const Dataset& data) {
  int classes = static_cast<int>(data.class_names().size());
  for (int64_t i = 0; i < data.size(); ++i) {
    if (data.label(i) < 0)
      throw input_error("{}: {}: expected a label to train on, found none", data.name(), data.id(i));
    classes = std::max(classes, data.label(i) + 1);
  }
  return classes;
}

InputSpec input_of(const FitOptions& options, int size) {
  InputSpec input;
  input.size = input.resize = size;  // an image that has this size already stays as it is
  if (options.data.starts_with("cifar10")) input.mean = kCifarMean, input.std = kCifarStd;
  return with_overrides(input, {.input_size = {},
                                .mean = rgb_from_flag(options.mean, "--mean"),
                                .std = rgb_from_flag(options.std, "--std")});
}

class ClassifierTask : public TrainTask {
 public:
  ClassifierTask(const FitOptions& options, const Dataset& data, Network& student, const InputSpec& input,
                 const Context& context)
      : options_(options),
        data_(data),
        student_(student),
        input_(input),
        context_(context),
        augment_(options.augment),
        training_(data, held_out_split(data.size(), options.holdout).training, options.train.strict),
        held_out_(data, held_out_split(data.size(), options.holdout).held_out, options.train.strict) {
    augment_.mean = input.mean;
    if (!options.teacher.empty()) {
      teacher_ = load_classifier(options.teacher, {}, context);
      if (teacher_->info().classes != classes_of(data))
        throw input_error("--teacher {}: expected {} classes, found {}", options.teacher, classes_of(data),
                          teacher_->info().classes);
      if (teacher_->info().input.size != input.size)
        throw input_error("--teacher {}: expected input of {} pixels, found {}", options.teacher, input.size,
                          teacher_->info().input.size);
    }
  }

  torch::nn::Module& network() override { return student_.module(); }
  int64_t examples() const override { return training_.size(); }
  int64_t held_out() const { return held_out_.size(); }
  std::map<int64_t, std::string> failures() const {
    auto all = training_.failures();
    all.merge(held_out_.failures());
    return all;
  }
  std::string score() const override { return "accuracy"; }
  std::string description() const override {
    return fmt::format("{}: {:.2f} M parameters, {} images to learn from, {} held out", options_.arch,
                       static_cast<double>(parameter_count(student_.module())) / 1e6, examples(), held_out());
  }

  void load(Batch& batch) const override {
    fill_augmented(batch);
    if (augment_.cutmix_share > 0) mix(batch);
  }

  Losses losses(const Batch& batch) override {
    const Tensor pixels = batch.pixels.to(torch_device(context_));          // (B, 3, S, S)
    const Tensor labels = batch.labels.to(torch_device(context_));          // (B)
    const Tensor logits = student_.forward(network_input(pixels, input_));  // (B, C)
    namespace F = torch::nn::functional;
    const auto entropy_of = [&](const Tensor& truth) {  // (B)
      return F::cross_entropy(
          logits, truth.to(logits.device()),
          F::CrossEntropyFuncOptions().label_smoothing(options_.label_smoothing).reduction(torch::kNone));
    };
    Tensor entropies = entropy_of(labels);
    if (batch.second_labels.defined())
      entropies = entropies.lerp(entropy_of(batch.second_labels), batch.second_shares.to(logits.device()));
    const Tensor entropy = entropies.mean();
    if (!teacher_) return {entropy, {{"cross_entropy", entropy}}};
    const double t = options_.teacher_temperature, share = options_.teacher_share;
    Tensor wanted;  // (B, C)
    {
      const torch::NoGradGuard no_grad;
      wanted = torch::softmax(teacher_->logits(pixels) / t, 1);
    }
    const Tensor distance = t * t *
                            F::kl_div(torch::log_softmax(logits / t, 1), wanted,
                                      F::KLDivFuncOptions().reduction(torch::kBatchMean));
    return {(1 - share) * entropy + share * distance,
            {{"cross_entropy", entropy}, {"distillation", distance}}};
  }

  Scores validate(WorkerGroup& group) override { return {{"accuracy", accuracy(held_out_, group)}}; }

  // Share of right answers on the images that can be read, each worker with its part of them.
  double accuracy(const ReadableImages& images, WorkerGroup& group) {
    const torch::NoGradGuard no_grad;
    Tensor sums = torch::zeros({2}, torch::kFloat64);  // right answers, images
    const int64_t count = images.size();
    for (int64_t first = group.rank() * kCheckBatch; first < count; first += group.size() * kCheckBatch) {
      stop_if_canceled(context_);
      Batch batch;
      batch.indices.resize(std::min(kCheckBatch, count - first));
      std::iota(batch.indices.begin(), batch.indices.end(), first);
      fill(
          batch, [&](int64_t index) { return images.find(index); },
          [](int64_t, const Image& image, std::span<float> out) { unchanged(image, out); });
      if (batch.pixels.size(0) == 0) continue;
      const Tensor logits =
          student_.forward(network_input(batch.pixels.to(torch_device(context_)), input_)).cpu();  // (B, C)
      sums[0] += (logits.argmax(1) == batch.labels).sum();
      sums[1] += batch.pixels.size(0);
    }
    group.sum(sums);
    return sums[1].item<double>() > 0 ? (sums[0] / sums[1]).item<double>() : 0;
  }

 private:
  // Rectangles of other images, varied as those are in this epoch.
  void mix(Batch& batch) const {
    const int side = input_.size;
    batch.second_labels = batch.labels.clone();
    batch.second_shares = torch::zeros({batch.labels.size(0)});
    for (size_t i = 0; i < batch.indices.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      const CutMix cut =
          draw_cutmix(augment_, context_.seed, batch.epoch, batch.indices[i], examples(), side);
      if (cut.width * cut.height == 0) continue;
      Batch other;
      other.epoch = batch.epoch;
      other.indices = {cut.partner};
      fill_augmented(other);
      const auto inside = [&](const Tensor& pixels) {  // (3, height, width)
        return pixels.narrow(1, cut.y, cut.height).narrow(2, cut.x, cut.width);
      };
      inside(batch.pixels[row]).copy_(inside(other.pixels[0]));
      batch.second_labels[row] = other.labels[0];
      batch.second_shares[row] = static_cast<double>(cut.width * cut.height) / (side * side);
    }
  }

  void fill_augmented(Batch& batch) const {
    fill(
        batch, [&](int64_t index) { return std::optional(training_.at(index)); },
        [&](int64_t i, const Image& image, std::span<float> out) {
          augment(image, augment_, context_.seed, batch.epoch, batch.indices[i], out);
        });
  }

  // Pixels and labels of those of batch.indices that read() finds.
  template <class Read, class Write>
  void fill(Batch& batch, Read read, Write write) const {
    const auto count = static_cast<int64_t>(batch.indices.size());
    const int64_t side = input_.size, floats = side * side * 3;
    Tensor rows = torch::empty({count, side, side, 3});
    Tensor labels = torch::empty({count}, torch::kInt64);
    int64_t found = 0;
    for (int64_t i = 0; i < count; ++i) {
      std::optional<LabeledImage> one = read(batch.indices[i]);
      if (!one) continue;
      Image image = std::move(one->image);
      if (image.width != side || image.height != side)
        image = resized_and_cropped(image, input_.resize, input_.size, input_.filter);
      write(i, image, std::span(rows.data_ptr<float>() + found * floats, floats));
      labels[found++] = one->label;
    }
    batch.labels = labels.narrow(0, 0, found);
    batch.pixels = rows.narrow(0, 0, found).permute({0, 3, 1, 2});  // (B, 3, S, S), channels last
  }

  const FitOptions& options_;
  const Dataset& data_;
  Network& student_;
  const InputSpec input_;
  const Context& context_;
  AugmentOptions augment_;
  ReadableImages training_, held_out_;
  std::unique_ptr<Classifier> teacher_;
};

std::vector<std::string> names_of_classes(const Dataset& data, int classes) {
  std::vector<std::string> names = data.class_names();
  for (int c = static_cast<int>(names.size()); c < classes; ++c) names.push_back(std::to_string(c));
  return names;
}

}  // namespace

Fields fields(FitOptions& o) {
  return Fields()
      .add("arch", o.arch, "architecture, as `aha models` lists them")
      .add("network", o.network, "changes to its sizes: key=value:key=value (widths=48,96,192:depths=2,2,2)")
      .add("init", o.init, "a model to fine-tune; a head of another size begins anew")
      .add("data", o.data, "training data (cifar10:train, folder:DIR, list:FILE.csv, imagenet:DIR:train)")
      .add("test", o.test, "data to test the result on, once; empty = cifar10:test after cifar10:train")
      .nest("", fields(o.slice))
      .add("holdout", o.holdout, "training images kept aside to choose the best weights; at most a fifth")
      .range(1, 1e9)
      .add("mean", o.mean, "mean color of the input normalization; empty = the data set's")
      .add("std", o.std, "deviation of the input normalization; empty = the data set's")
      .add("label-smoothing", o.label_smoothing, "share of the target spread over all classes")
      .range(0, 0.9)
      .add("layer-scale", o.layer_scale, "ConvNeXt: where the residual branches begin")
      .range(0, 10)
      .add("start", o.start, "ViT: normal, or mimetic: attention begins as trained networks have it")
      .choices({"normal", "mimetic"})
      .add("teacher", o.teacher, "a classifier to learn from")
      .add("teacher-share", o.teacher_share, "weight of the teacher's answer against the label's")
      .range(0, 1)
      .add("teacher-temperature", o.teacher_temperature, "softness of the compared answers")
      .range(0.1, 100)
      .nest("", fields(o.augment))
      .nest("", fields(o.train));
}

std::optional<FitReport> fit_classifier(const FitOptions& options, const Context& given_context) {
  const auto lock = enter_run_folder(options.train);
  Context context = given_context;
  const auto group = start_or_join_workers(options.train.workers, options.train.worker_timeout_s, context);
  if (!group) return std::nullopt;
  const FitReport report = fit(options, *group, context);
  return group->leader() ? std::optional(report) : std::nullopt;
}

FitReport fit(const FitOptions& given, WorkerGroup& group, const Context& context) {
  FitOptions options = given;
  if (options.train.out.empty()) throw input_error("--out: expected the folder of the run, found nothing");
  const auto data = slice(open_dataset(options.data), options.slice);
  const int classes = classes_of(*data);
  const auto network = fresh_network(options, classes, context.seed);
  Network& student = *network;
  if (!options.init.empty() &&
      take_matching(student.module(), table_from_state(load_network(options.init).network->module())) == 0)
    throw input_error("--init {}: none of its tensors fits {}", options.init, options.arch);
  student.module().to(torch_device(context));
  student.set_precision(context.precision);
  const InputSpec input = input_of(options, student.image_size());
  ClassifierTask task(options, *data, student, input, context);

  FitReport report;
  report.directory = options.train.out;
  report.parameters = parameter_count(student.module());
  report.train_images = task.examples();
  report.held_out_images = task.held_out();
  const int64_t batch = context.batch_size > 0 ? context.batch_size : kOwnBatch;
  nlohmann::json settings = settings_that_decide(fields(options));
  settings["batch-size"] = batch;
  settings["seed"] = context.seed;
  report.train = train(task, options.train, batch, settings, group, context);
  report.held_out_accuracy = report.train.best.at("accuracy");

  std::string test = options.test;
  if (test.empty() && options.data == "cifar10:train") test = "cifar10:test";
  nlohmann::json figures = {{"held_out_accuracy", report.held_out_accuracy}};
  if (!test.empty()) {
    // The second half of CIFAR-10's test images is kept for evaluations outside this repository.
    const auto examples = slice(open_dataset(test), {.limit = test == "cifar10:test" ? 5000 : 0});
    std::vector<int64_t> all(examples->size());
    std::iota(all.begin(), all.end(), 0);
    report.test_images = examples->size();
    student.module().eval();
    const ReadableImages test_images(*examples, all, options.train.strict);
    report.test_accuracy = task.accuracy(test_images, group);
    report.images += examples->size();
    report.unreadable = unreadable_images(*examples, test_images.failures(), group);
    figures["test_accuracy"] = report.test_accuracy;
  }
  report.images += data->size();
  for (auto& one : unreadable_images(*data, task.failures(), group)) report.unreadable.push_back(one);
  if (group.leader()) {
    ModelCard card;
    card.summary = fmt::format("{} on {}, {:.2f} M parameters", options.arch, without_folders(options.data),
                               static_cast<double>(report.parameters) / 1e6);
    card.input = input;
    if (options.data.starts_with("cifar10")) card.mean_color = kCifarMean;
    card.classes = names_of_classes(*data, classes);
    card.provenance = {{"data", without_folders(options.data)},
                       {"recipe", settings.dump()},
                       {"seed", context.seed},
                       {"figures", figures}};
    save_classifier(options.train.out, student, card);
  }
  return report;
}

}  // namespace aha
