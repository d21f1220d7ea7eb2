#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/bench/as_shipped.h"
#include "aha/bench/eval_run_section.h"
#include "aha/bench/fit_section.h"
#include "aha/bench/kernels_section.h"
#include "aha/bench/machine.h"
#include "aha/bench/methods_section.h"
#include "aha/bench/networks_section.h"
#include "aha/bench/objective_section.h"
#include "aha/bench/sinkhorn_section.h"
#include "aha/cli/command.h"
#include "aha/evaluate/report.h"

namespace aha {
namespace {

struct BenchFlags {
  std::vector<std::string> only;
  std::string network;
  bool peer = false, eager = false, long_list = false;
};

const std::vector<std::string> kSections = {"kernels", "networks", "sinkhorn", "train",  "refine",
                                            "eval",    "eval-run", "fit",      "methods"};

Fields fields(BenchFlags& f) {
  return Fields()
      .add("only", f.only, "sections to measure; default: all")
      .choices(kSections)
      .add("network", f.network, "of the networks, only the one of this name (bench/problems/networks.txt)")
      .add("peer", f.peer,
           "eager libtorch beside it: tuned in this process, and as shipped in one of its own")
      .add("eager", f.eager, "networks on eager libtorch in the place of the engine")
      .add("long", f.long_list, "every kernel set, epilogue and problem; takes minutes");
}

std::optional<NetworkFigures> figures_as_shipped(const std::string& network, const Call& call) {
  std::vector<std::string> arguments = {"bench",        "--only",
                                        "networks",     "--network",
                                        network,        "--eager",
                                        "--json",       "--quiet",
                                        "--threads",    std::to_string(call.common.threads),
                                        "--batch-size", std::to_string(call.common.batch_size)};
  const auto document = json_as_shipped(arguments);
  if (!document) {
    spdlog::warn("{}: eager libtorch as shipped failed on this machine", network);
    return std::nullopt;
  }
  return network_figures_from_json(document->at("networks").at(0));
}

// A whole evaluation of cheap methods in a folder that is gone afterwards; returns the perturbed images.
int64_t evaluated_images(Classifier& target, int64_t images, const Context& context) {
  std::string folder = (std::filesystem::temp_directory_path() / "aha-bench-XXXXXX").string();
  if (!::mkdtemp(folder.data())) throw work_error("{}: {}", folder, std::strerror(errno));
  const std::shared_ptr<void> gone(nullptr, [&](void*) { std::filesystem::remove_all(folder); });
  EvaluateOptions options;
  options.methods = {"random", "center", "gradient", "gradcam"};
  options.timing_runs = 0;
  const auto data = slice(open_dataset("cifar10:sample"), {.limit = images});
  const Evaluation evaluation = evaluate({target}, *data, options, folder, context);
  write_results(evaluation, folder);
  return evaluation.target_evaluations;
}

// Measures a section and prints it at once, or puts it into the document. The machine comes with the first
// one: a call that is refused prints nothing.
class Report {
 public:
  Report(const BenchFlags& flags, bool json) : flags_(flags), json_(json) {}

  template <class Measure>
  void section(const std::string& name, const std::string& title, const Measure& measure) {
    if (!flags_.only.empty() && std::find(flags_.only.begin(), flags_.only.end(), name) == flags_.only.end())
      return;
    const auto rows = measure();
    if (document_.empty()) {
      const Machine machine = this_machine();
      document_["machine"] = json_from(machine);
      if (!json_) fmt::print("{}", text_from(machine));
    }
    auto& list = document_[name] = nlohmann::ordered_json::array();
    for (const auto& row : rows) list.push_back(json_from(row));
    if (json_) return;
    fmt::print("\n{}\n{}", title, table_from(rows));
    flush_output();
  }
  const nlohmann::ordered_json& document() const { return document_; }

 private:
  const BenchFlags& flags_;
  bool json_;
  nlohmann::ordered_json document_;
};

void run(const BenchFlags& flags, Call& call) {
  if (flags.eager && flags.peer) throw input_error("--eager and --peer exclude each other");
  if (call.context.device.cuda)
    throw input_error("bench: expected --device cpu, found {}", text_from_device(call.context.device));
  Report report(flags, call.common.json);
  const Context& context = call.context;
  report.section("kernels", "Kernels",
                 [&] { return bench_kernels({.long_list = flags.long_list}, context); });
  report.section(
      "networks", flags.peer ? "Networks; the ratios are eager libtorch's time over ours" : "Networks", [&] {
        NetworkBenchOptions options;
        options.long_list = flags.long_list;
        options.network = flags.network;
        options.peer = flags.peer;
        options.eager = flags.eager;
        if (flags.peer)
          options.as_shipped = [&](const std::string& network) { return figures_as_shipped(network, call); };
        return bench_networks(options, context);
      });
  report.section("sinkhorn", "Soft top-k masks, forward and backward, one thread",
                 [&] { return bench_sinkhorn({.long_list = flags.long_list}, context); });
  const ObjectiveBenchOptions objective{.long_list = flags.long_list, .peer = flags.peer};
  report.section("train", "Training step", [&] { return bench_train(objective, context); });
  report.section("refine", "Refinement", [&] { return bench_refine(objective, context); });
  report.section("eval", "Evaluating a map", [&] { return bench_eval(objective, context); });
  report.section("eval-run", "A whole evaluation beside the target's bare forward passes", [&] {
    return bench_eval_run({.long_list = flags.long_list,
                           .peer = flags.peer,
                           .run = [&](Classifier& target,
                                      int64_t images) { return evaluated_images(target, images, context); }},
                          context);
  });
  report.section("fit", "Training a classifier: a step with all gradients",
                 [&] { return bench_fit({.long_list = flags.long_list, .peer = flags.peer}, context); });
  report.section("methods", "Maps of methods",
                 [&] { return bench_methods({.long_list = flags.long_list, .peer = flags.peer}, context); });
  if (call.common.json) call.print(nlohmann::json(report.document()));
}

}  // namespace

Command bench_command() {
  return {"bench",
          "how fast this build is on this machine, beside eager libtorch where asked",
          "  aha bench --only sinkhorn",
          with_flags<BenchFlags>(run),
          "  aha bench\n"
          "  aha bench --peer --json > bench.json\n"
          "  aha bench --only networks --network vit_b_16 --threads 1 --peer\n"
          "  aha bench --only methods --peer\n"
          "  AHA_TUNING=off aha bench --only networks --eager",
          {},
          {"threads", "batch-size", "json", "quiet", "verbose"}};
}

}  // namespace aha
