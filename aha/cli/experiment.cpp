#include "aha/experiments/experiment.h"

#include "aha/base/error.h"
#include "aha/base/terminal.h"
#include "aha/base/timer.h"
#include "aha/cli/command.h"
#include "aha/experiments/section.h"

namespace aha {
namespace {

struct ExperimentFlags {
  std::vector<std::string> names;
  ExperimentOptions options;
  bool list = false, all = false;
  std::string page;
};

Fields fields(ExperimentFlags& f) {
  return fields(f.options)
      .add("list", f.list, "say which experiments there are")
      .add("all", f.all, "every experiment; those whose data or weights are absent are skipped")
      .add("page", f.page, "write the sections of --out as one page to this file, after the experiments");
}

void list(Call& call) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& name : experiment_names()) {
    const Recipe recipe = experiment_named(name);
    if (call.common.json)
      all.push_back({{"name", name},
                     {"summary", recipe.summary},
                     {"reproduces", recipe.reproduces},
                     {"needs", recipe.needs}});
    else
      fmt::print("{:<26}{}\n", name,
                 wrapped(recipe.summary + (recipe.reproduces.empty() ? "" : " [" + recipe.reproduces + "]"),
                         static_cast<size_t>(terminal_width(1)), 26));
  }
  if (call.common.json) call.print(all);
}

void run(const ExperimentFlags& flags, Call& call) {
  if (flags.list) return list(call);
  if (flags.all && !flags.names.empty())
    throw input_error("--all: expected no names beside it, found {}", fmt::join(flags.names, " "));
  const auto names = flags.all ? experiment_names() : flags.names;
  if (names.empty() && flags.page.empty())
    throw input_error("expected the name of an experiment, --all or --list, found nothing; available: {}",
                      fmt::join(experiment_names(), ", "));
  ExperimentOptions options = flags.options;
  options.version = AHA_VERSION;
  std::vector<Recipe> recipes;
  for (const auto& name : names) recipes.push_back(adapted(experiment_named(name), options));
  nlohmann::json report = nlohmann::json::array();
  double seconds = 0;
  for (const auto& recipe : recipes) {
    if (const auto what = missing(recipe, call.context)) {
      if (!flags.all && recipes.size() == 1) throw input_error("{}: {}", recipe.name, *what);
      if (!flags.all) call.exit_code = 2;
      fmt::print(stderr, "aha: {}: skipped: {}\n", recipe.name, *what);
      report.push_back({{"name", recipe.name}, {"skipped", *what}});
      continue;
    }
    const Outcome outcome = run_experiment(recipe, options, call.context);
    seconds += outcome.seconds;
    report.push_back({{"name", recipe.name}, {"seconds", outcome.seconds}, {"rows", outcome.rows.size()}});
    if (call.common.json) continue;
    if (!call.common.quiet) fmt::print("{}\n", outcome_markdown(recipe, outcome));
    fmt::print("{}: {:.1f} s; {}/{}/section.md\n", recipe.name, outcome.seconds, options.out, recipe.name);
    flush_output();
  }
  if (!flags.page.empty()) write_experiments_page(flags.page, options.out);
  if (call.common.json) return call.print(report);
  if (recipes.size() > 1) fmt::print("{} experiments: {:.1f} s\n", recipes.size(), seconds);
}

}  // namespace

Command experiment_command() {
  return {"experiment",
          "run an experiment of the paper: a table beside the paper's figures, charts, what agrees",
          "  aha experiment --list\n"
          "  aha experiment soft-masks --quick --out experiments",
          with_flags<ExperimentFlags>(
              run, {"NAME...", &ExperimentFlags::names, "experiments, as --list has them", false}),
          "  aha experiment refinement-steps --images 1000\n"
          "  aha experiment main-imagenet --target vit_ti_16:vit_tiny.safetensors --data list:val.csv"};
}

}  // namespace aha
