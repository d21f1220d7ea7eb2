#include "aha/base/error.h"
#include "aha/base/terminal.h"
#include "aha/cli/command.h"
#include "aha/cli/target_options.h"
#include "aha/evaluate/report.h"
#include "aha/evaluate/terminal_table.h"
#include "aha/methods/fitting.h"
#include "aha/networks/catalog.h"
#include "aha/train/run_folder.h"

namespace aha {
namespace {

// Seconds that a worker waits for one with more to do; one that dies is noticed at once.
constexpr double kPatience = 86400;

struct EvalFlags {
  TargetOptions target;
  EvaluateOptions evaluate;
  std::string explainer, encoder, data, out;
  SliceOptions slice;
  int workers = 1;
  bool overwrite = false;

  EvalFlags() { evaluate.methods.clear(); }  // those that fit the target
};

Fields fields(EvalFlags& f) {
  return fields(f.target)
      .nest("", fields(f.evaluate))
      .add("explainer", f.explainer, kExplainerHelp)
      .add("encoder", f.encoder, kEncoderHelp)
      .add("data", f.data,
           "a data set: list:FILE.csv, folder:DIR, imagenet:DIR, imagenet-seg:FILE.mat, cifar10:sample")
      .nest("", fields(f.slice))
      .add("workers", f.workers, "processes on this machine, each with a share of the images")
      .range(1, 256)
      .add("out", f.out, "folder of the results; the same call continues there")
      .add("overwrite", f.overwrite, "write into a folder that holds files, but no evaluation");
}

void run(const EvalFlags& flags, Call& call) {
  if (flags.data.empty())
    throw input_error(
        "--data: expected a data set (list:FILE.csv, folder:DIR, imagenet:DIR, cifar10:sample), found "
        "nothing");
  if (flags.out.empty()) throw input_error("--out: expected a folder for the results, found nothing");
  std::unique_ptr<FolderLock> lock;  // a worker's starter holds it
  if (answers_for_folder())
    lock = enter_folder(flags.out, {"rows.jsonl", "results.json"}, "an evaluation", flags.overwrite);
  const auto group = start_or_join_workers(flags.workers, kPatience, call.context);
  if (!group) return;  // the workers have done it
  const auto target = load_target(flags.target, call.context);
  auto explainer = explainer_for(flags.explainer, *target, call.context, flags.encoder);
  const auto data = slice(open_dataset(flags.data), flags.slice);
  const MethodContext by{*target, explainer ? &*explainer : nullptr};
  EvaluateOptions options = flags.evaluate;
  options.methods = chosen_methods(options.methods, by);
  auto finished = evaluate_together(by, *data, options, flags.out, *group, call.context);
  if (!finished) return;  // the leader says the rest
  Evaluation& evaluation = *finished;
  evaluation.settings["version"] = AHA_VERSION;
  const auto files = write_results(evaluation, flags.out);
  if (!evaluation.summary.failures.empty()) call.exit_code = 1;
  if (call.common.json) {
    call.print(results_json(evaluation));
    return;
  }
  const auto width = static_cast<size_t>(terminal_width(1));
  fmt::print("{}\n", table_text(evaluation, width, wants_color(1)));
  fmt::print("{}\n",
             wrapped(fmt::format("{} target evaluations for the metrics in {:.1f} s; written: {}",
                                 evaluation.target_evaluations, evaluation.seconds, fmt::join(files, ", ")),
                     width, 0));
}

}  // namespace

Command eval_command() {
  return {
      "eval", "evaluate methods on many images: a table with intervals, curves and a report",
      "  aha eval --target cifar10-vit4 --data cifar10:sample --limit 8 --methods aha,chefer,random --out "
      "results",
      with_flags<EvalFlags>(run),
      "  aha eval --target vit_ti_16:vit_tiny.safetensors --data list:val.csv --methods "
      "random,gradcam,chefer,chefer:blur=4 --out results\n"
      "  aha eval --target script:model.pt --data folder:photos --methods rise:masks=1000 --protocol "
      "equations --limit 50 --out results"};
}

}  // namespace aha
