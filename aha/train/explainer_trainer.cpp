#include "aha/train/explainer_trainer.h"

#include <cmath>

#include "aha/tensor/torch.h"

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/networks/class_names.h"
#include "aha/nn/module_state.h"
#include "aha/train/run_folder.h"

namespace aha {
namespace {

constexpr int64_t kUsualBatch = 8;

void check_data(const Dataset& data, const Classifier& target, const ExplainerTrainOptions& options) {
  if (options.explained != "truth") return;
  if (options.cutmix_share > 0)
    throw input_error(
        "--cutmix-share {}: expected --class predicted, found truth; a label says nothing of two images in "
        "one",
        options.cutmix_share);
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.label(i) < 0 || data.label(i) >= target.info().classes)
      throw input_error("{}: {} has label {}, but {} knows classes 0..{}; --class predicted needs no labels",
                        data.name(), data.id(i), data.label(i), target.info().name,
                        target.info().classes - 1);
}

// Fresh, with an empty card, or the one to go on from.
LoadedExplainer first_explainer(const ExplainerRun& run, Classifier& target, const Context& context) {
  if (run.from.empty()) return {make_explainer(target, run.shape, context), {}};
  LoadedExplainer loaded =
      load_explainer(run.from, &target, context, run.shape.encoder == "target" ? "" : run.shape.encoder);
  if (!made_for(loaded.card, target))
    throw input_error("--from {}: expected an explainer of {}, found one of {}", run.from, target.info().name,
                      loaded.card.target->name);
  if (run.shape.prior != "none") loaded.explainer->add_prior(run.shape.prior, run.shape.prior_weight);
  return loaded;
}

// The objective's settings that refinement will read, nothing left open.
nlohmann::json card_training(ExplainerTrainOptions options) {
  options.objective.tau_final = final_tau(options.objective);
  options.objective.noise_final = final_noise(options.objective);
  return settings_that_decide(fields(options));
}

// The card's settings of refinement.
nlohmann::json card_refinement(const ExplainerTrainOptions& options, const RefinementRates& rates) {
  nlohmann::json refinement = {{"refine", options.refinement_form}, {"lr", rates.head}};
  if (options.refinement_form != "head") {
    refinement["map-lr"] = rates.map;
    refinement["moves"] = options.refinement_moves;
  }
  if (!options.refinement_guard) refinement["guard"] = false;
  if (options.refinement_steps > 0) refinement["S"] = options.refinement_steps;
  return refinement;
}

// The learning rates at which three steps of refinement gain most.
RefinementRates searched_rates(ExplainerTask& task, const ExplainerTrainOptions& options, WorkerGroup& group,
                               const Context& context) {
  constexpr int kSteps = 3;
  const std::vector<double> head_rates = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2},
                            map_rates = options.refinement_form == "head" ? std::vector<double>{}
                                                                          : std::vector{0.5, 1.0, 2.0, 4.0};
  const int64_t images = std::min(options.search_images, task.held_out()),
                count = std::ssize(head_rates) + std::ssize(map_rates);
  Context leader_only = context;
  leader_only.quiet = context.quiet || !group.leader();
  if (group.leader())
    spdlog::info(
        "trained; searches the learning rates of refinement: {} rates, {} held-out images each (--no-search "
        "skips it)",
        count, images);
  auto progress = leader_only.progress("search", count * images);
  RefinementRates best{options.refinement_lr, options.refinement_map_lr};
  const auto search = [&](const std::string& form, const std::vector<double>& rates, double& wanted) {
    double most = -2;
    for (const double rate : rates) {
      RefinementRates tried = best;
      (form == "head" ? tried.head : tried.map) = rate;
      RefineOptions refinement = refine_options_from_card(
          card_training(options), card_refinement(options, tried), final_tau(options.objective));
      refinement.steps = kSteps;
      refinement.form = form;
      const auto after = [&] { progress.advance(group.size(), fmt::format("{} lr {:g}", form, rate)); };
      const double found = task.held_out_scores(refinement, images, group, after).at("ins-del");
      if (group.leader())
        spdlog::info("refinement of {}, {} steps at lr {:g}: ins-del {:.4f}", form, kSteps, rate, found);
      if (found > most) most = found, wanted = rate;
    }
  };
  search("head", head_rates, best.head);
  search("map", map_rates, best.map);
  return best;
}

}  // namespace

Fields fields(ExplainerRun& r) {
  return Fields()
      .add("data", r.data,
           "images to learn from: cifar10:train, folder:DIR, list:FILE.csv, imagenet:DIR:train")
      .nest("", fields(r.slice))
      .add("from", r.from,
           "a trained explainer of this target to go on from; encoder and shape are its own then, a --prior "
           "is added")
      .nest("", fields(r.shape))
      .nest("", fields(r.train));
}

std::optional<ExplainerReport> train_explainer(const ExplainerRun& run, const Context& given_context) {
  const std::string& out = run.train.train.out;
  if (run.data.empty())
    throw input_error(
        "--data: expected images to learn from (cifar10:train, folder:DIR, ...), found nothing");
  const auto lock = enter_run_folder(run.train.train);
  Context context = given_context;
  const auto group =
      start_or_join_workers(run.train.train.workers, run.train.train.worker_timeout_s, context);
  if (!group) return std::nullopt;
  const auto target = load_classifier(run.target, run.load, context);
  const auto given = slice(open_dataset(run.data), run.slice);
  std::vector<int> classes;
  if (run.train.explained == "truth")
    classes = classes_of_labels(given->class_names(), given->name(), target->info());
  const auto named = classes.empty() ? nullptr : relabeled(*given, classes);
  const Dataset& data = named ? *named : *given;
  const LoadedExplainer first = first_explainer(run, *target, context);

  ExplainerRun copy = run;
  nlohmann::json settings = json_from_fields(fields(copy.shape));
  settings["target"] = target->info().sha256;
  settings["data"] = run.data;
  settings.update(json_from_fields(fields(copy.slice)));
  settings["from"] = first.card.sha256;
  const ExplainerReport report =
      train_decoder(*target, *first.explainer, data, run.train, settings, *group, context);
  if (!group->leader()) return std::nullopt;
  ModelCard card = explainer_card(target->info(), run.data, run.train, report, context);
  card.target->tensors = fingerprint_of(*target);
  if (!first.card.sha256.empty()) card.provenance["began_with"] = first.card.sha256;
  save_explainer(out, *first.explainer, card);
  return report;
}

ExplainerReport train_decoder(Classifier& target, Explainer& explainer, const Dataset& data,
                              const ExplainerTrainOptions& options, nlohmann::json settings,
                              WorkerGroup& group, const Context& context) {
  check_options(options.objective);
  check_data(data, target, options);
  const int64_t batch = context.batch_size > 0 ? context.batch_size : kUsualBatch;
  if (batch % (options.norm_group * group.size()) != 0)
    throw input_error("--batch-size {}: expected a multiple of norm-group ({}) times workers ({})", batch,
                      options.norm_group, group.size());
  ExplainerTask task(target, explainer, data, options, batch, group, context);
  if (task.held_out() == 0)
    throw input_error("{}: expected at least 5 images, found {}", data.name(), data.size());
  for (auto& parameter : explainer.decoder()->parameters()) parameter.requires_grad_(true);
  explainer.decoder()->class_embed->weight.requires_grad_(options.learn_embedding);

  ExplainerTrainOptions copy = options;
  settings.update(settings_that_decide(fields(copy)));
  settings["batch-size"] = batch;
  settings["seed"] = context.seed;
  ExplainerReport report;
  report.parameters = parameter_count(*explainer.decoder());
  report.train_images = task.examples();
  report.held_out_images = task.held_out();
  report.train = train(task, options.train, batch, settings, group, context);
  const bool searched = options.search && options.search_images > 0;
  report.refinement = searched ? searched_rates(task, options, group, context)
                               : RefinementRates{options.refinement_lr, options.refinement_map_lr};
  report.images = data.size();
  report.unreadable = unreadable_images(data, task.failures(), group);
  return report;
}

ModelCard explainer_card(const ClassifierInfo& target, const std::string& data,
                         const ExplainerTrainOptions& options, const ExplainerReport& report,
                         const Context& context) {
  ModelCard card;
  card.summary = fmt::format("explainer of {} on {}, {:.2f} M parameters", without_folders(target.name),
                             without_folders(data), static_cast<double>(report.parameters) / 1e6);
  card.input = target.input;
  card.classes = target.class_names;
  card.target = ModelCard::TargetPart{without_folders(target.name), target.architecture, target.sha256, {}};
  card.temperature = final_tau(options.objective);
  card.training = card_training(options);
  card.training["reference-values"] = json_from_references(
      with_mean_color(options.objective.reference, target.mean_color), options.objective.references);
  card.refinement = card_refinement(options, report.refinement);
  card.provenance = {{"data", without_folders(data)},
                     {"seed", context.seed},
                     {"figures",
                      {{"held_out_deletion", report.train.best.at("deletion")},
                       {"held_out_insertion", report.train.best.at("insertion")},
                       {"held_out_ins_del", report.train.best.at("ins-del")},
                       {"steps", report.train.steps}}}};
  if (report.train.first_step == 0)  // a continued run knows only its own part
    card.provenance["figures"]["seconds"] = std::round(report.train.seconds);
  return card;
}

}  // namespace aha
