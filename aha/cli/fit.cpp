#include "aha/train/classifier_trainer.h"

#include "aha/cli/command.h"

namespace aha {
namespace {

nlohmann::json json_from(const FitReport& r) {
  nlohmann::json out = {{"model", r.directory},
                        {"parameters", r.parameters},
                        {"images", r.train_images},
                        {"held_out_images", r.held_out_images},
                        {"held_out_accuracy", r.held_out_accuracy},
                        {"steps", r.train.steps},
                        {"best_step", r.train.best_step},
                        {"seconds", r.train.seconds},
                        {"images_per_second", r.train.images_per_second},
                        {"failures", json_from_failures(r.unreadable)}};
  if (r.test_images > 0) out["test_images"] = r.test_images, out["test_accuracy"] = r.test_accuracy;
  return out;
}

void run(const FitOptions& options, Call& call) {
  const auto found = fit_classifier(options, call.context);
  if (!found) return;
  const FitReport& report = *found;
  call.count_failures(std::ssize(report.unreadable), report.images);
  if (call.common.json) return call.print(json_from(report));
  fmt::print("{}: held-out accuracy {:.2f} % of {} images at step {} of {}\n", report.directory,
             100 * report.held_out_accuracy, report.held_out_images, report.train.best_step,
             report.train.steps);
  if (report.test_images > 0)
    fmt::print("{}: test accuracy {:.2f} % of {} images\n", report.directory, 100 * report.test_accuracy,
               report.test_images);
}

}  // namespace

Command fit_command() {
  return {"fit",
          "train or fine-tune a classifier",
          "  aha fit --arch convnext_mini --data cifar10:sample --limit 160 --epochs 1 --out my-classifier",
          with_flags<FitOptions>(run),
          "  aha fit --config cifar10-convnext --out runs/convnext\n"
          "  aha fit --config cifar10-convnext --out runs/convnext --resume\n"
          "  aha fit --arch vit_mini_4 --data cifar10:train --teacher runs/convnext --epochs 30 --workers 2 "
          "--out runs/vit4",
          {"arch", "data", "limit", "teacher", "test", "epochs", "lr", "out", "resume", "workers",
           "batch-size", "seed", "quiet", "json"}};
}

}  // namespace aha
