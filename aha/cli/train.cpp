#include "aha/train/explainer_trainer.h"

#include <tuple>

#include "aha/cli/command.h"
#include "aha/cli/target_options.h"

namespace aha {
namespace {

struct TrainFlags {
  TargetOptions target;
  ExplainerRun run;
};

nlohmann::json json_from(const ExplainerReport& report, const std::string& out) {
  return {{"explainer", out},
          {"steps", report.train.steps},
          {"parameters", report.parameters},
          {"held_out", report.train.best},
          {"refinement_lr", report.refinement.head},
          {"refinement_map_lr", report.refinement.map},
          {"seconds", report.train.seconds},
          {"images_per_second", report.train.images_per_second},
          {"failures", json_from_failures(report.unreadable)}};
}

Fields fields(TrainFlags& f) {
  return fields(f.target).nest("", fields(f.run));
}

void run(const TrainFlags& flags, Call& call) {
  ExplainerRun wanted = flags.run;
  std::tie(wanted.target, wanted.load) = named_target(flags.target);
  const auto report = train_explainer(wanted, call.context);
  if (!report) return;
  call.count_failures(std::ssize(report->unreadable), report->images);
  const std::string& out = flags.run.train.train.out;
  if (call.common.json) return call.print(json_from(*report, out));
  const Scores& best = report->train.best;
  fmt::print("{}: insertion {:.4f}, deletion {:.4f}, ins-del {:.4f} on {} held-out images; {} steps in {}\n",
             out, best.at("insertion"), best.at("deletion"), best.at("ins-del"), report->held_out_images,
             report->train.steps, clock_text(report->train.seconds));
}

}  // namespace

Command train_command() {
  return {"train",
          "train an explainer for a frozen target",
          "  aha train --target cifar10-vit8 --data cifar10:sample --limit 64 --epochs 1 --no-search --out "
          "my-explainer",
          with_flags<TrainFlags>(run),
          "  aha train --target cifar10-convnext --data cifar10:train --config cifar10-explainer --out run\n"
          "  aha train --target vit_b_16:vit_b_16.pth --encoder dinov3_vitl16:dinov3.safetensors --data "
          "imagenet:DIR:train --out run --config paper\n"
          "  aha train --target vit_ti_16:vit_tiny.safetensors --data folder:photos --out run --workers 2 "
          "--resume",
          {"target", "data", "limit", "encoder", "from", "epochs", "lr", "search", "out", "resume", "workers",
           "batch-size", "seed", "quiet"}};
}

}  // namespace aha
