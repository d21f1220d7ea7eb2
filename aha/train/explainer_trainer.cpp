#include "aha/train/explainer_trainer.h"

#include "aha/tensor/torch.h"

#include <unordered_map>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/data/augment.h"
#include "aha/metrics/map_score.h"
#include "aha/models/prior.h"
#include "aha/models/vit_encoder.h"
#include "aha/nn/state.h"
#include "aha/objective/one_thread_each.h"
#include "aha/objective/refine.h"
#include "aha/train/random_view.h"

namespace aha {
namespace {

constexpr int64_t kUsualBatch = 8;
constexpr uint64_t kFlipPurpose = 0x666c6970, kViewPurpose = 0x76696577, kDropPurpose = 0x64726f70;
constexpr int kSearchSteps = 3;

// What is computed once a picture: the encoder's features and the target's answer.
struct Known {
  std::vector<Tensor> levels;  // (1, C_k, h_k, w_k)
  Tensor prior;                // (1, H, W) where the explainer has one
  int64_t explained = 0;       // the class: the target's answer, or the label
  int64_t bytes() const {
    int64_t sum = prior.defined() ? static_cast<int64_t>(prior.nbytes()) : 0;
    for (const auto& level : levels) sum += static_cast<int64_t>(level.nbytes());
    return sum;
  }
};

class KnownPictures {
 public:
  KnownPictures(Classifier& target, Explainer& explainer, int64_t most_bytes) : target_(target), explainer_(explainer), most_bytes_(most_bytes) {}

  // keys[i] names pixels[i]; labels are taken for the classes where there are any. Each picture is computed alone, on one thread: its numbers do not depend on when it was first asked for.
  std::vector<Known> of(const std::vector<int64_t>& keys, const Tensor& pixels, const Tensor& labels) {
    std::vector<Known> out(keys.size());
    std::vector<int64_t> missing;
    for (size_t i = 0; i < keys.size(); ++i)
      if (const auto found = kept_.find(keys[i]); found != kept_.end())
        out[i] = found->second;
      else
        missing.push_back(static_cast<int64_t>(i));
    one_thread_each(static_cast<int64_t>(missing.size()), [&](int64_t m) {
      const torch::NoGradGuard no_grad;
      const Tensor one = pixels.narrow(0, missing[m], 1);
      Known& known = out[missing[m]];
      const Tensor classes = labels.defined() ? labels.narrow(0, missing[m], 1).to(one.device()) : target_.logits(one).argmax(1);
      const Features features = explainer_.features(one, classes);
      for (const auto& level : features.levels) known.levels.push_back(level.contiguous());
      known.prior = features.prior;
      known.explained = classes.item<int64_t>();
    });
    for (const int64_t i : missing)
      if (bytes_ + out[i].bytes() <= most_bytes_ && kept_.emplace(keys[i], out[i]).second) bytes_ += out[i].bytes();
    return out;
  }

 private:
  Classifier& target_;
  Explainer& explainer_;
  int64_t most_bytes_, bytes_ = 0;
  std::unordered_map<int64_t, Known> kept_;
};

Features joined(std::span<const Known> pictures, int64_t height, int64_t width) {
  const auto rows = [&](const auto& part) {
    std::vector<Tensor> list;
    for (const auto& picture : pictures) list.push_back(part(picture));
    return torch::cat(list);
  };
  Features features{{}, height, width, {}};
  for (size_t k = 0; k < pictures[0].levels.size(); ++k) features.levels.push_back(rows([k](const Known& picture) { return picture.levels[k]; }));
  if (pictures[0].prior.defined()) features.prior = rows([](const Known& picture) { return picture.prior; });
  return features;
}

// BatchNorm's running statistics. They are set through variable_data: the backward of a group that has already run does not look at them.
class RunningStatistics {
 public:
  explicit RunningStatistics(torch::nn::Module& network) {
    for (const auto& item : network.named_buffers()) (item.value().is_floating_point() ? buffers_ : counters_).push_back(item.value());
  }
  Tensor flat() const {
    std::vector<Tensor> parts;
    for (const auto& buffer : buffers_) parts.push_back(buffer.variable_data().flatten());
    return parts.empty() ? torch::empty({0}) : torch::cat(parts);
  }
  // Steps, not forwards: the groups of a step may be spread over workers.
  void set_count(int64_t steps) {
    for (auto& counter : counters_) counter.variable_data().fill_(steps);
  }
  void set(const Tensor& flat) {
    int64_t offset = 0;
    for (auto& buffer : buffers_) {
      buffer.variable_data().copy_(flat.narrow(0, offset, buffer.numel()).view(buffer.sizes()));
      offset += buffer.numel();
    }
  }

 private:
  std::vector<Tensor> buffers_, counters_;
};

class ExplainerTask : public TrainTask {
 public:
  ExplainerTask(Classifier& target, Explainer& explainer, const Dataset& data, const ExplainerTrainOptions& options, int64_t global_batch,
                WorkerGroup& group, const Context& context)
      : target_(target), explainer_(explainer), data_(data), options_(options), global_batch_(global_batch), group_(group), context_(context),
        known_(target, explainer, options.view_area < 1 || options.cutmix_share > 0 ? 0 : int64_t{options.cache_mb} << 20), statistics_(*explainer.decoder()) {
    HeldOutSplit split = held_out_split(data.size(), options.holdout);
    training_ = std::move(split.training);
    held_out_ = std::move(split.held_out);
    const int64_t epoch_steps = std::max<int64_t>(1, examples() / global_batch);
    total_steps_ = options.train.epochs * epoch_steps;
    if (options.train.max_steps > 0) total_steps_ = std::min(total_steps_, options.train.max_steps);
  }

  torch::nn::Module& network() override { return *explainer_.decoder(); }
  int64_t examples() const override { return static_cast<int64_t>(training_.size()); }
  int64_t held_out() const { return static_cast<int64_t>(held_out_.size()); }
  std::string score() const override { return "ins-del"; }
  std::string description() const override {
    return fmt::format("decoder of {:.2f} M parameters on {}, {} pictures to learn from, {} held out",
                       static_cast<double>(parameter_count(*explainer_.decoder())) / 1e6, explainer_.encoder().info().name, examples(), held_out());
  }

  void load(Batch& batch) const override {
    std::vector<Tensor> rows;
    batch.labels = torch::empty({static_cast<int64_t>(batch.indices.size())}, torch::kInt64);
    for (size_t i = 0; i < batch.indices.size(); ++i) {
      const int64_t example = training_[batch.indices[i]];
      Tensor pixels = mixed_view_of(batch.indices[i], batch.epoch);  // (3, H, W)
      if (flipped(batch.epoch, batch.indices[i])) pixels = pixels.flip(2);
      rows.push_back(pixels);
      batch.labels[static_cast<int64_t>(i)] = data_.label(example);
    }
    batch.pixels = torch::stack(rows);
  }

  Losses losses(const Batch& batch) override {
    const int64_t B = batch.pixels.size(0), H = batch.pixels.size(2), W = batch.pixels.size(3), n = options_.norm_group;
    std::vector<int64_t> keys;
    for (const int64_t index : batch.indices) keys.push_back(2 * training_[index] + (flipped(batch.epoch, index) ? 1 : 0));
    const Tensor pixels = batch.pixels.to(torch_device(context_));
    const auto pictures = known_.of(keys, pixels, options_.explained == "truth" ? batch.labels : Tensor());
    const Tensor classes = classes_of(pictures);

    const Tensor before = statistics_.flat();
    Tensor after = torch::zeros_like(before);
    Losses out;
    Tensor deletion, insertion, smoothness;
    double range = 0;
    const auto add = [](Tensor& sum, const Tensor& value) { sum = sum.defined() ? sum + value : value; };
    for (int64_t first = 0; first < B; first += n) {
      statistics_.set(before);
      const ObjectiveImages images{pixels.narrow(0, first, n), classes.narrow(0, first, n)};
      const int64_t place = group_.rank() * B + first;  // in the global batch
      Features features = joined(std::span(pictures).subspan(first, n), H, W);
      if (options_.feature_dropout > 0) drop_channels(features, batch.step, place);
      const Tensor maps = explainer_.decode(features, images.classes);  // (n, H, W)
      const auto step = draw_step(options_.objective, {context_.seed, batch.step, place / n, place, progress(batch.step)}, n, H, W);
      const auto result = objective(target_, maps, images, step, options_.objective, context_);
      add(out.total, result.loss);
      add(deletion, result.deletion);
      add(insertion, result.insertion);
      add(smoothness, result.smoothness);
      range += result.score_range;
      after += statistics_.flat();
    }
    const double groups = static_cast<double>(B / n);
    after /= groups;
    group_.sum(after);
    statistics_.set(after / group_.size());
    statistics_.set_count(batch.step + 1);
    out.total = out.total / groups;
    out.terms = {{"deletion", deletion / groups},
                 {"insertion", insertion / groups},
                 {"smoothness", smoothness / groups},
                 {"score_range", torch::tensor(range / groups)}};
    return out;
  }

  // Each worker takes its share of the pictures.
  Scores validate(WorkerGroup& group) override {
    RefineOptions plain;
    plain.steps = 0;
    return judged(plain, held_out(), group);
  }

  // Ins - Del of the first `count` held-out pictures.
  Scores judged(const RefineOptions& refinement, int64_t count, WorkerGroup& group) {
    Tensor sums = torch::zeros({3}, torch::kFloat64);  // deletion, insertion, pictures
    for (int64_t i = group.rank(); i < std::min(count, held_out()); i += group.size()) {
      stop_if_cancelled(context_);
      const int64_t example = held_out_[i];
      const Tensor pixels = input_from_image(data_.image(example), target_.info().input).unsqueeze(0).to(torch_device(context_));
      const Tensor clean = probabilities(target_, pixels, context_);  // (1, C)
      const Tensor classes = options_.explained == "truth" ? torch::tensor({static_cast<int64_t>(data_.label(example))}) : clean.argmax(1);
      const Refined refined = refined_maps(target_, explainer_, pixels, classes.to(pixels.device()), refinement, context_);
      if (!refined.failed[0].empty()) {
        if (refinement.steps == 0) throw work_error("{}: {}", data_.id(example), refined.failed[0]);
        sums += std::nan("");  // never the best
        continue;
      }
      std::vector<Tensor> references;
      for (const auto& kind : options_.objective.references) references.push_back(reference_images(pixels, {kind}, target_.info()));
      const MapScore score = score_maps(target_, pixels, refined.maps, classes, references, context_)[0];
      sums += torch::tensor({score.deletion, score.insertion, 1.0}, torch::kFloat64);
    }
    group.sum(sums);
    const double n = std::max(1.0, sums[2].item<double>()), deletion = sums[0].item<double>() / n, insertion = sums[1].item<double>() / n;
    return {{"deletion", deletion}, {"insertion", insertion}, {"ins-del", insertion - deletion}};
  }

 private:
  double progress(int64_t step) const { return total_steps_ > 1 ? static_cast<double>(step) / static_cast<double>(total_steps_ - 1) : 1; }

  // Zeros in place of whole channels, the others grow by as much. Drawn by (step, place of the picture, level) alone.
  void drop_channels(Features& features, int64_t step, int64_t place) const {
    const double p = options_.feature_dropout;
    for (size_t k = 0; k < features.levels.size(); ++k) {
      Tensor& level = features.levels[k];  // (n, C, h, w)
      const int64_t n = level.size(0), C = level.size(1);
      Tensor keep = torch::empty({n, C, 1, 1});
      for (int64_t i = 0; i < n; ++i) {
        const Rng rng(context_.seed, stream_id({kDropPurpose, static_cast<uint64_t>(step), static_cast<uint64_t>(place + i), k}));
        for (int64_t c = 0; c < C; ++c) keep.data_ptr<float>()[i * C + c] = rng.uniform_at(c) < p ? 0.f : static_cast<float>(1 / (1 - p));
      }
      level = level * keep.to(level.device());
    }
  }

  Tensor view_of(int64_t example, int64_t epoch) const {
    const InputSpec& input = target_.info().input;
    if (options_.view_area >= 1) return input_from_image(data_.image(example), input);
    return random_view(data_.image(example), input, options_.view_area,
                       Rng(context_.seed, stream_id({kViewPurpose, static_cast<uint64_t>(epoch), static_cast<uint64_t>(example)})));
  }

  Tensor mixed_view_of(int64_t index, int64_t epoch) const {
    Tensor pixels = view_of(training_[index], epoch);
    const CutMix cut = draw_cutmix({.cutmix_share = options_.cutmix_share}, context_.seed, epoch, index, examples(), static_cast<int>(pixels.size(2)));
    if (cut.width <= 0 || cut.height <= 0) return pixels;
    const auto rectangle = [&](const Tensor& x) { return x.narrow(1, cut.y, cut.height).narrow(2, cut.x, cut.width); };
    rectangle(pixels).copy_(rectangle(view_of(training_[cut.partner], epoch)));
    return pixels;
  }

  bool flipped(int64_t epoch, int64_t index) const {
    return options_.flip && Rng(context_.seed, stream_id({kFlipPurpose, static_cast<uint64_t>(epoch)})).uniform_at(static_cast<uint64_t>(index)) < 0.5f;
  }

  Tensor classes_of(const std::vector<Known>& pictures) const {
    std::vector<int64_t> classes;
    for (const auto& picture : pictures) classes.push_back(picture.explained);
    return torch::tensor(classes, torch::kInt64).to(torch_device(context_));
  }

  Classifier& target_;
  Explainer& explainer_;
  const Dataset& data_;
  const ExplainerTrainOptions& options_;
  int64_t global_batch_, total_steps_ = 0;
  WorkerGroup& group_;
  const Context& context_;
  KnownPictures known_;
  RunningStatistics statistics_;
  std::vector<int64_t> training_, held_out_;
};

void check_data(const Dataset& data, const Classifier& target, const ExplainerTrainOptions& options) {
  if (options.explained != "truth") return;
  if (options.cutmix_share > 0) throw input_error("--cutmix-share {}: expected --class predicted, found truth; a label says nothing of two pictures in one", options.cutmix_share);
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.label(i) < 0 || data.label(i) >= target.info().classes)
      throw input_error("{}: {} has label {}, but {} knows classes 0..{}; --class predicted needs no labels", data.name(), data.id(i), data.label(i),
                        target.info().name, target.info().classes - 1);
}

// Taps of the usual depths: four blocks of a transformer, the stages of a ConvNet.
std::vector<std::string> usual_levels(const Classifier& target) {
  std::vector<std::string> stages;
  int depth = 0;
  for (const auto& name : target.tap_names()) {
    if (name == fmt::format("block.{}", depth)) ++depth;
    if (name == fmt::format("stage.{}", stages.size())) stages.push_back(name);
  }
  if (depth == 0) return stages;
  std::vector<std::string> levels;
  for (const int block : default_blocks(depth)) levels.push_back(fmt::format("block.{}", block));
  return levels;
}

}  // namespace

Fields fields(ExplainerShape& s) {
  return Fields()
      .add("encoder", s.encoder, "features the explainer sees: target (its own taps), dinov3_vitl16:FILE, a model directory")
      .add("levels", s.levels, "taps of the encoder, finest first (block.2,block.5,..., stage.0,...); empty = the usual four")
      .add("scales", s.scales, "how a level is resized: s enlarges, 1 keeps, -s shrinks; empty = by the size of the pictures (paper: 4,2,1,-2)").range(-16, 16)
      .add("channels", s.channels, "channels of the decoder's pyramid; 0 = by the size of the pictures (paper: 256)").range(0, 4096)
      .add("top-channels", s.top, "channels after the fusion; 0 = by the size (paper: 128)").range(0, 4096)
      .add("head-channels", s.head, "channels of the refinement head; 0 = by the size (paper: 64)").range(0, 4096)
      .add("embedding", s.embedding, "width of the class embedding; 0 = begin from the target's own class rows (paper: 1024)").range(0, 65536)
      .add("lens", s.lens, "token times class as a channel of each level; the paper has none")
      .add("output", s.output, "activation of the map").choices({"none", "sigmoid"})
      .add("padding", s.padding, "of the decoder's 3x3 convolutions").choices({"zeros", "replicate"})
      .add("prior", s.prior, "a map of the target's own to begin from; costs a backward pass a map").choices(kPriors)
      .add("prior-weight", s.prior_weight, "what the prior's order, 0 to 1, is multiplied by").range(0, 1e6);
}

std::unique_ptr<Explainer> make_explainer(Classifier& target, const ExplainerShape& shape, const Context& context) {
  const auto& info = target.info();
  const bool own = shape.encoder == "target";
  std::shared_ptr<Encoder> encoder;
  if (own) {
    const auto levels = shape.levels.empty() ? usual_levels(target) : shape.levels;
    if (levels.empty())
      throw input_error("--encoder target: {} ({}) shows no blocks or stages; expected --levels among its taps ({}) or another --encoder", info.name,
                        info.architecture, list_some(target.tap_names()));
    encoder = encoder_from_target(target, levels);
  } else {
    encoder = load_encoder(shape.encoder, {.levels = shape.levels, .normed = true}, context);
  }

  const auto maps = encoder->features(torch::zeros({1, 3, info.input.size, info.input.size}).to(torch_device(context)));
  DecoderOptions o;
  o.widths.clear();
  for (const auto& map : maps) o.widths.push_back(static_cast<int>(map.size(1)));
  const bool flat = std::all_of(maps.begin(), maps.end(), [&](const Tensor& map) { return map.size(2) == maps[0].size(2); });
  // Levels of one size become a pyramid (DPT's x4, x2, x1, /2); a ConvNet's stages are one already.
  const bool small = info.input.size <= 64;
  if (!shape.scales.empty())
    o.scales = shape.scales;
  else if (flat && maps.size() == 4 && maps[0].size(2) < info.input.size)
    o.scales = small ? std::vector<int>{2, 1, 1, -2} : std::vector<int>{4, 2, 1, -2};
  else
    o.scales.assign(maps.size(), 1);
  const int64_t finest = maps[0].size(2) * o.scales[0];
  o.last_up = 2 * finest <= info.input.size ? 2 : 1;
  const auto chosen = [](int given, int usual) { return given > 0 ? given : usual; };
  o.channels = chosen(shape.channels, small ? 32 : 64);
  o.top = chosen(shape.top, small ? 16 : 64);
  o.head = chosen(shape.head, small ? 16 : 32);
  const Tensor rows = target.class_rows();
  const bool from_rows = shape.embedding == 0 && rows.defined();
  o.embedding = from_rows ? static_cast<int>(rows.size(1)) : chosen(shape.embedding, small ? 32 : 64);
  o.classes = info.classes;
  // Raw activations differ in scale by orders of magnitude. Over a few channels (pixels have three) a LayerNorm would lose what they say together.
  constexpr int kNormable = 16;
  o.level_norm = !encoder->info().normed && *std::min_element(o.widths.begin(), o.widths.end()) >= kNormable;
  o.lens = shape.lens;
  o.output = shape.output;
  o.padding = shape.padding;
  o.prior = shape.prior;
  o.prior_weight = shape.prior_weight;

  torch::manual_seed(context.seed);
  auto explainer = std::make_unique<Explainer>(std::move(encoder), o, &target);
  if (o.prior != "none") explainer->decoder()->start_from_prior();
  if (from_rows) explainer->decoder()->start_embedding_from(rows.cpu());
  explainer->decoder()->to(torch_device(context));
  explainer->decoder()->set_precision(context.precision);
  return explainer;
}

ExplainerTrainOptions::ExplainerTrainOptions() {
  train.epochs = 1;
  train.average = 0;
  train.optimiser.weight_decay = 1e-3;
  train.schedule.lr = 1e-3;
  train.schedule.warmup = 0.1;
}

Fields fields(ExplainerTrainOptions& o) {
  Fields list;
  list.add("class", o.explained, "the class explained").choices({"predicted", "truth"})
      .add("norm-group", o.norm_group, "pictures that share BatchNorm's statistics and a grid").range(1, 4096)
      .add("flip", o.flip, "mirror half of the pictures")
      .add("view-area", o.view_area, "learn from random squares of at least this share of a picture; 1 = from the picture as the target sees it").range(0.01, 1)
      .add("cutmix-share", o.cutmix_share, "share of the pictures that show a rectangle of another one").range(0, 1)
      .add("feature-dropout", o.feature_dropout, "learn without this share of the encoder's channels, others each time").range(0, 0.95)
      .add("learn-embedding", o.learn_embedding, "the class embedding learns; without, it stays as it began, for few pictures a class")
      .add("holdout", o.holdout, "pictures kept aside for validation; at most a fifth").range(1, 1e9)
      .add("feature-cache", o.cache_mb, "megabytes for features of pictures; 0 = none").range(0, 1e7)
      .add("search-pictures", o.search_pictures, "held-out pictures that choose the learning rate of refinement at the end; 0 = keep the paper's").range(0, 1e9)
      .add("refinement-perturbation-steps", o.refinement_steps, "S of refinement, for the card; 0 = training's").range(0, 4096);
  list.nest("", fields(o.objective));
  list.nest("", fields(o.train));
  return list;
}

// The card's settings of refinement that are chosen, not found.
static nlohmann::json chosen_refinement(const ExplainerTrainOptions& options) {
  nlohmann::json chosen = nlohmann::json::object();
  if (options.refinement_steps > 0) chosen["S"] = options.refinement_steps;
  return chosen;
}

ExplainerReport train_explainer(Classifier& target, Explainer& explainer, const Dataset& data, const ExplainerTrainOptions& options,
                                nlohmann::json settings, WorkerGroup& group, const Context& context) {
  check_options(options.objective);
  check_data(data, target, options);
  const int64_t batch = context.batch_size > 0 ? context.batch_size : kUsualBatch;
  if (batch % (options.norm_group * group.size()) != 0)
    throw input_error("--batch-size {}: expected a multiple of norm-group ({}) times workers ({})", batch, options.norm_group, group.size());
  ExplainerTask task(target, explainer, data, options, batch, group, context);
  if (task.held_out() == 0) throw input_error("{}: expected at least 5 pictures, found {}", data.name(), data.size());
  for (auto& parameter : explainer.decoder()->parameters()) parameter.requires_grad_(true);
  explainer.decoder()->class_embed->weight.requires_grad_(options.learn_embedding);

  ExplainerReport report;
  report.parameters = parameter_count(*explainer.decoder());
  report.train_images = task.examples();
  report.held_out_images = task.held_out();

  ExplainerTrainOptions copy = options;
  const nlohmann::json own = settings_that_decide(fields(copy));
  settings.update(own);
  settings["batch-size"] = batch;
  settings["seed"] = context.seed;
  report.train = train(task, options.train, batch, settings, group, context);

  if (options.search_pictures > 0) {
    RefineOptions refinement = refine_options_from_card(own, chosen_refinement(options), options.objective.tau_final);
    refinement.steps = kSearchSteps;
    double best = -2;
    for (const double lr : {1e-4, 3e-4, 1e-3, 3e-3, 1e-2}) {
      refinement.lr = lr;
      const double found = task.judged(refinement, options.search_pictures, group).at("ins-del");
      if (group.leader()) spdlog::info("refinement, {} steps at lr {:g}: ins-del {:.4f}", kSearchSteps, lr, found);
      if (found > best) best = found, report.refinement_lr = lr;
    }
  }
  return report;
}

void save_trained(Classifier& target, Explainer& explainer, const std::string& data, const ExplainerTrainOptions& options, const ExplainerReport& report,
                  const Context& context) {
  const auto& info = target.info();
  ModelCard card;
  card.summary = fmt::format("explainer of {} on {}, {:.2f} M parameters", without_folders(info.name), without_folders(data), static_cast<double>(report.parameters) / 1e6);
  card.input = info.input;
  card.classes = info.class_names;
  card.target = ModelCard::TargetPart{without_folders(info.name), info.architecture, info.sha256};
  card.temperature = options.objective.tau_final;
  ExplainerTrainOptions copy = options;
  card.training = settings_that_decide(fields(copy));
  card.refinement = chosen_refinement(options);
  if (report.refinement_lr > 0) card.refinement["lr"] = report.refinement_lr;
  card.provenance = {{"data", without_folders(data)},
                     {"seed", context.seed},
                     {"figures",
                      {{"held_out_deletion", report.train.best.at("deletion")},
                       {"held_out_insertion", report.train.best.at("insertion")},
                       {"held_out_ins_del", report.train.best.at("ins-del")},
                       {"steps", report.train.steps}}}};
  if (!report.began_with.empty()) card.provenance["began_with"] = report.began_with;
  save_explainer(options.train.out, explainer, card);
}

}  // namespace aha
