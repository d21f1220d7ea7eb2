#include "aha/train/explainer_trainer.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/cli/command.h"
#include "aha/cli/target_options.h"
#include "aha/networks/catalog.h"

namespace aha {
namespace {

struct TrainFlags {
  TargetOptions target;
  std::string data, from;
  SliceOptions slice;
  ExplainerShape shape;
  ExplainerTrainOptions train;
};

Fields fields(TrainFlags& f) {
  Fields list = fields(f.target);
  list.add("data", f.data, "pictures to learn from: cifar10:train, folder:DIR, list:FILE.csv, imagenet:DIR:train")
      .nest("", fields(f.slice))
      .add("from", f.from, "a trained explainer of this target to go on from; encoder and shape are its own then, a --prior is added");
  list.nest("", fields(f.shape));
  list.nest("", fields(f.train));
  return list;
}

nlohmann::json json_from(const ExplainerReport& report, const std::string& out) {
  return {{"explainer", out},
          {"steps", report.train.steps},
          {"parameters", report.parameters},
          {"held_out", report.train.best},
          {"refinement_lr", report.refinement_lr},
          {"seconds", report.train.seconds},
          {"images_per_second", report.train.images_per_second}};
}

// Fresh, with an empty card, or the one to go on from.
LoadedExplainer first_explainer(const TrainFlags& flags, Classifier& target, const Context& context) {
  if (flags.from.empty()) return {make_explainer(target, flags.shape, context), {}};
  LoadedExplainer loaded = load_explainer(flags.from, &target, context, flags.shape.encoder == "target" ? "" : flags.shape.encoder);
  if (loaded.card.target->sha256 != target.info().sha256)
    throw input_error("--from {}: expected an explainer of {}, found one of {}", flags.from, target.info().name, loaded.card.target->name);
  if (flags.shape.prior != "none") loaded.explainer->add_prior(flags.shape.prior, flags.shape.prior_weight);
  return loaded;
}

void run_train(TrainFlags& flags, Call& call) {
  const std::string& out = flags.train.train.out;
  if (flags.data.empty()) throw input_error("--data: expected pictures to learn from (cifar10:train, folder:DIR, ...), found nothing");
  if (out.empty()) throw input_error("--out: expected the folder of the run, found nothing");
  if (flags.train.train.workers > 1 && !is_worker()) {
    run_workers(flags.train.train.workers, own_arguments(), call.context);
    return;
  }
  const auto group = WorkerGroup::from_environment(flags.train.train.worker_timeout_s);
  if (call.context.threads == 0 && workers_here() > 1) {
    call.context.threads = std::max(1, cores_present() / workers_here());
    start_compute(call.context);
  }
  const auto target = load_target(flags.target, call.context);
  const auto data = slice(open_dataset(flags.data), flags.slice);
  const LoadedExplainer first = first_explainer(flags, *target, call.context);
  nlohmann::json settings = json_from_fields(fields(flags.shape));
  settings["target"] = target->info().sha256;
  settings["data"] = flags.data;
  settings.update(json_from_fields(fields(flags.slice)));
  settings["from"] = first.card.sha256;
  auto report = train_explainer(*target, *first.explainer, *data, flags.train, settings, *group, call.context);
  if (!group->leader()) return;
  report.began_with = first.card.sha256;
  save_trained(*target, *first.explainer, flags.data, flags.train, report, call.context);
  if (call.common.json)
    call.print(json_from(report, out));
  else
    fmt::print("{}: insertion {:.4f}, deletion {:.4f}, ins-del {:.4f} on {} held-out pictures; {} steps in {}\n", out, report.train.best.at("insertion"),
               report.train.best.at("deletion"), report.train.best.at("ins-del"), report.held_out_images, report.train.steps,
               clock_text(report.train.seconds));
}

}  // namespace

Command train_command() {
  return {"train", "train an explainer for a frozen target",
          "  aha train --target cifar10-convnext --data cifar10:train --out my-explainer --config recipes/cifar10-explainer.toml\n"
          "  aha train --target vit_b_16:vit_b_16.pth --encoder dinov3_vitl16:dinov3.safetensors --data imagenet:DIR:train --out run --config recipes/paper.toml\n"
          "  aha train --target vit_ti_16:vit_tiny.safetensors --data folder:photos --out run --workers 2 --resume",
          [](Declaration& d) -> Run {
            auto flags = std::make_shared<TrainFlags>();
            d.add(fields(*flags));
            return [flags](Call& call) { run_train(*flags, call); };
          }};
}

}  // namespace aha
