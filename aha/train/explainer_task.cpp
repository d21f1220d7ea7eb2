#include "aha/train/explainer_task.h"

#include "aha/tensor/torch.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/rng.h"
#include "aha/data/augment.h"
#include "aha/metrics/map_score.h"
#include "aha/nn/module_state.h"
#include "aha/train/random_view.h"

namespace aha {
namespace {

constexpr uint64_t kFlipPurpose = 0x666c6970, kViewPurpose = 0x76696577, kDropPurpose = 0x64726f70;

// Random views and mixed images are never the same twice.
int64_t cache_bytes(const ExplainerTrainOptions& options) {
  return options.view_area < 1 || options.cutmix_share > 0 ? 0 : int64_t{options.cache_mb} << 20;
}

// Means over the groups of a step.
class TermMeans {
 public:
  void add(const ObjectiveResult& result) {
    const std::array<Tensor, 4> terms = {result.loss, result.deletion, result.insertion, result.smoothness};
    for (size_t i = 0; i < terms.size(); ++i) sums_[i] = sums_[i].defined() ? sums_[i] + terms[i] : terms[i];
    range_ += result.score_range;
    residual_ += result.residual;
    ++groups_;
  }

  Losses losses(const ObjectiveOptions& options) const {
    const auto mean = [&](size_t i) { return sums_[i] / groups_; };
    const std::vector<std::pair<std::string, Tensor>> terms = {
        {"deletion", mean(1)}, {"insertion", mean(2)}, {"smoothness", mean(3)}};
    const double weights[] = {options.lambda_deletion, options.lambda_insertion, options.lambda_smoothness};
    Losses out{mean(0), terms};
    double sizes[3], all = 0;
    for (size_t i = 0; i < 3; ++i) all += sizes[i] = std::abs(weights[i] * terms[i].second.item<double>());
    for (size_t i = 0; i < 3; ++i)
      out.terms.emplace_back(terms[i].first + "_share",
                             torch::tensor(all > 0 ? sizes[i] / all : 0.0, torch::kFloat64));
    out.terms.emplace_back("score_range", torch::tensor(range_ / groups_));
    out.terms.emplace_back("sinkhorn_residual", torch::tensor(residual_ / groups_, torch::kFloat64));
    return out;
  }

 private:
  std::array<Tensor, 4> sums_;  // loss, deletion, insertion, smoothness
  double range_ = 0, residual_ = 0, groups_ = 0;
};

}  // namespace

ExplainerTrainOptions::ExplainerTrainOptions() {
  train.epochs = 1;
  train.average = 0;
  train.optimizer.weight_decay = 1e-3;
  train.schedule.lr = 1e-3;
  train.schedule.warmup = 0.1;
}

Fields fields(ExplainerTrainOptions& o) {
  return Fields()
      .add("class", o.explained, "the class explained")
      .choices({"predicted", "truth"})
      .add("norm-group", o.norm_group, "images that share BatchNorm's statistics and a grid")
      .range(1, 4096)
      .add("flip", o.flip, "mirror half of the images")
      .add("view-area", o.view_area,
           "learn from random squares of at least this share of an image; 1 = from the image as the target "
           "sees it")
      .range(0.01, 1)
      .add("cutmix-share", o.cutmix_share, "share of the images that show a rectangle of another one")
      .range(0, 1)
      .add("feature-dropout", o.feature_dropout,
           "learn without this share of the encoder's channels, others each time")
      .range(0, 0.95)
      .add("learn-embedding", o.learn_embedding,
           "the class embedding learns; without, it stays as it began, for few images per class")
      .add("holdout", o.holdout, "images kept aside for validation; at most a fifth")
      .range(1, 1e9)
      .add("feature-cache", o.cache_mb, "megabytes for features of images; 0 = none")
      .range(0, 1e7)
      .add("search", o.search,
           "after the last step, search the learning rates of refinement on held-out images")
      .add("search-images", o.search_images,
           "held-out images that choose the learning rates of refinement at the end; 0 = take refinement-lr "
           "and refinement-map-lr")
      .range(0, 1e9)
      .add("refinement-form", o.refinement_form,
           "what refinement changes: the decoder (the paper's form), the map, or one after the other")
      .choices({"head", "map", "head-then-map"})
      .add("refinement-moves", o.refinement_moves, "moves of the map in a step of refinement")
      .range(1, 4096)
      .add("refinement-lr", o.refinement_lr,
           "learning rate of refinement of the decoder where none is searched; the paper has 1e-4")
      .range(0, 10)
      .add("refinement-map-lr", o.refinement_map_lr, "the same of the map")
      .range(1e-6, 1000)
      .add("refinement-guard", o.refinement_guard,
           "refinement keeps the explainer's own map where it is the better one")
      .add("refinement-perturbation-steps", o.refinement_steps,
           "S of refinement, for the card; 0 = training's")
      .range(0, 4096)
      .nest("", fields(o.objective))
      .nest("", fields(o.train));
}

ExplainerTask::ExplainerTask(Classifier& target, Explainer& explainer, const Dataset& data,
                             const ExplainerTrainOptions& options, int64_t global_batch, WorkerGroup& group,
                             const Context& context)
    : target_(target),
      explainer_(explainer),
      data_(data),
      options_(options),
      group_(group),
      context_(context),
      reference_(with_mean_color(options.objective.reference, target.info().mean_color)),
      training_(data, held_out_split(data.size(), options.holdout).training, options.train.strict),
      held_out_(data, held_out_split(data.size(), options.holdout).held_out, options.train.strict),
      total_steps_(total_steps(options.train, examples(), global_batch)),
      features_(target, explainer, cache_bytes(options)),
      statistics_(*explainer.decoder()) {}

std::string ExplainerTask::description() const {
  return fmt::format("decoder of {:.2f} M parameters on {}, {} images to learn from, {} held out",
                     static_cast<double>(parameter_count(*explainer_.decoder())) / 1e6,
                     explainer_.encoder().info().name, examples(), held_out());
}

std::string ExplainerTask::remark(const Scores& means) const {
  return fmt::format(
      "deletion {:.2g} %, insertion {:.2g} %, smoothness {:.2g} % of its terms, Sinkhorn residual {:.1e}",
      100 * means.at("deletion_share"), 100 * means.at("insertion_share"), 100 * means.at("smoothness_share"),
      means.at("sinkhorn_residual"));
}

void ExplainerTask::load(Batch& batch) const {
  std::vector<Tensor> rows;
  batch.labels = torch::empty({static_cast<int64_t>(batch.indices.size())}, torch::kInt64);
  for (size_t i = 0; i < batch.indices.size(); ++i) {
    const View view = mixed_view_of(batch.indices[i], batch.epoch);
    rows.push_back(flipped(batch.epoch, batch.indices[i]) ? view.pixels.flip(2) : view.pixels);
    batch.labels[static_cast<int64_t>(i)] = view.label;
  }
  batch.pixels = torch::stack(rows);
}

Losses ExplainerTask::losses(const Batch& batch) {
  const int64_t B = batch.pixels.size(0), H = batch.pixels.size(2), W = batch.pixels.size(3),
                n = options_.norm_group;
  std::vector<int64_t> keys, explained;
  for (const int64_t index : batch.indices)
    keys.push_back(2 * training_.example(index) + (flipped(batch.epoch, index) ? 1 : 0));
  const Tensor pixels = batch.pixels.to(torch_device(context_));
  const auto known = features_.of(keys, pixels, options_.explained == "truth" ? batch.labels : Tensor());
  for (const auto& image : known) explained.push_back(image.explained);
  const Tensor classes = torch::tensor(explained, torch::kInt64).to(pixels.device());

  const Tensor before = statistics_.flat();
  Tensor after = torch::zeros_like(before);
  TermMeans means;
  for (int64_t first = 0; first < B; first += n) {
    statistics_.set(before);
    const ObjectiveImages images{pixels.narrow(0, first, n), classes.narrow(0, first, n)};
    const int64_t place = group_.rank() * B + first;  // in the global batch
    Features features = joined(std::span(known).subspan(first, n), H, W);
    if (options_.feature_dropout > 0) drop_channels(features, batch.step, place);
    const Tensor maps = explainer_.decode(features, images.classes);  // (n, H, W)
    const auto step = draw_step(options_.objective,
                                {context_.seed, batch.step, place / n, place, progress(batch.step)}, n, H, W);
    means.add(objective(target_, maps, images, step, options_.objective, context_));
    after += statistics_.flat();
  }
  after /= static_cast<double>(B) / static_cast<double>(n);
  group_.sum(after);
  statistics_.set(after / group_.size());
  statistics_.set_count(batch.step + 1);
  return means.losses(options_.objective);
}

Scores ExplainerTask::validate(WorkerGroup& group) {
  RefineOptions plain;
  plain.steps = 0;
  return held_out_scores(plain, held_out(), group);
}

Scores ExplainerTask::held_out_scores(const RefineOptions& refinement, int64_t count, WorkerGroup& group,
                                      const std::function<void()>& after) {
  Tensor sums = torch::zeros({3}, torch::kFloat64);  // deletion, insertion, images
  for (int64_t i = group.rank(); i < std::min(count, held_out()); i += group.size()) {
    stop_if_canceled(context_);
    const auto read = held_out_.find(i);
    if (!read) continue;
    const Tensor pixels =
        input_from_image(read->image, target_.info().input).unsqueeze(0).to(torch_device(context_));
    const Tensor clean = probabilities(target_, pixels, context_);  // (1, C)
    const Tensor classes =
        options_.explained == "truth" ? torch::tensor({static_cast<int64_t>(read->label)}) : clean.argmax(1);
    const Refined refined =
        refined_maps(target_, explainer_, pixels, classes.to(pixels.device()), refinement, context_);
    if (!refined.failed[0].empty()) {
      if (refinement.steps == 0)
        throw work_error("{}: {}", data_.id(held_out_.example(i)), refined.failed[0]);
      sums += std::nan("");
      continue;
    }
    const auto references = all_references(pixels, reference_, options_.objective.references);
    const MapScore score = score_maps(target_, pixels, refined.maps, classes, references, context_)[0];
    sums += torch::tensor({score.deletion, score.insertion, 1.0}, torch::kFloat64);
    if (after) after();
  }
  group.sum(sums);
  if (sums[2].item<double>() == 0)
    throw input_error("{}: none of the {} held-out images can be read", data_.name(), held_out());
  const double n = sums[2].item<double>(), deletion = sums[0].item<double>() / n,
               insertion = sums[1].item<double>() / n;
  return {{"deletion", deletion}, {"insertion", insertion}, {"ins-del", insertion - deletion}};
}

// Zeros in place of whole channels, the others grow by as much. Drawn by (step, place of the image, level)
// alone.
void ExplainerTask::drop_channels(Features& features, int64_t step, int64_t place) const {
  const double p = options_.feature_dropout;
  for (size_t k = 0; k < features.levels.size(); ++k) {
    Tensor& level = features.levels[k];  // (n, C, h, w)
    const int64_t n = level.size(0), C = level.size(1);
    Tensor keep = torch::empty({n, C, 1, 1});
    for (int64_t i = 0; i < n; ++i) {
      const Rng rng(context_.seed, stream_id({kDropPurpose, static_cast<uint64_t>(step),
                                              static_cast<uint64_t>(place + i), k}));
      for (int64_t c = 0; c < C; ++c)
        keep.data_ptr<float>()[i * C + c] = rng.uniform_at(c) < p ? 0.f : static_cast<float>(1 / (1 - p));
    }
    level = level * keep.to(level.device());
  }
}

ExplainerTask::View ExplainerTask::view_of(int64_t index, int64_t epoch) const {
  const InputSpec& input = target_.info().input;
  const LabeledImage read = training_.at(index);
  if (options_.view_area >= 1) return {input_from_image(read.image, input), read.label};
  const auto example = static_cast<uint64_t>(training_.example(index));
  return {random_view(read.image, input, options_.view_area,
                      Rng(context_.seed, stream_id({kViewPurpose, static_cast<uint64_t>(epoch), example}))),
          read.label};
}

ExplainerTask::View ExplainerTask::mixed_view_of(int64_t index, int64_t epoch) const {
  View view = view_of(index, epoch);
  const CutMix cut = draw_cutmix({.cutmix_share = options_.cutmix_share}, context_.seed, epoch, index,
                                 examples(), static_cast<int>(view.pixels.size(2)));
  if (cut.width <= 0 || cut.height <= 0) return view;
  const auto rectangle = [&](const Tensor& x) {
    return x.narrow(1, cut.y, cut.height).narrow(2, cut.x, cut.width);
  };
  rectangle(view.pixels).copy_(rectangle(view_of(cut.partner, epoch).pixels));
  return view;
}

std::map<int64_t, std::string> ExplainerTask::failures() const {
  auto all = training_.failures();
  all.merge(held_out_.failures());
  return all;
}

bool ExplainerTask::flipped(int64_t epoch, int64_t index) const {
  return options_.flip && Rng(context_.seed, stream_id({kFlipPurpose, static_cast<uint64_t>(epoch)}))
                                  .uniform_at(static_cast<uint64_t>(index)) < 0.5f;
}

}  // namespace aha
