#include "aha/bench/methods_section.h"

#include <numeric>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/bench/bench_network.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/kernels/kernel_set.h"
#include "aha/methods/catalog.h"

namespace aha {
namespace {

struct MethodInput {
  Tensor pixels, classes;  // (B, 3, H, W), (B)
  std::vector<uint64_t> streams;
};

MethodInput method_input(int64_t batch, int size) {
  MethodInput input{torch::rand({batch, 3, size, size}), torch::zeros({batch}, torch::kInt64),
                    std::vector<uint64_t>(batch)};
  std::iota(input.streams.begin(), input.streams.end(), uint64_t{0});
  return input;
}

Attribution attributed(Method& method, const MethodInput& input, const Context& context) {
  return method.attribute(input.pixels, input.classes, input.streams, context);
}

MethodBenchRow measured(const MethodProblem& problem, const std::string& spec, const Subject& subject,
                        const MethodBenchOptions& options, const Context& context) {
  const int64_t batch = context.batch_size > 0 ? context.batch_size : problem.batch;
  const MethodInput many = method_input(batch, subject.size), one = method_input(1, subject.size);
  std::vector<std::unique_ptr<Method>> sides;
  sides.push_back(make_method(spec, {*subject.target}));
  if (options.peer) sides.push_back(make_method(spec, {*subject.eager}));
  std::vector<std::function<void()>> pieces;
  const auto add = [&](const MethodInput& input) {
    for (const auto& side : sides) pieces.push_back([&] { attributed(*side, input, context); });
  };
  add(many);
  if (batch > 1) add(one);
  const auto best = best_ms_each(pieces, TimeKind::kWall, {options.seconds, 3}, context);
  const auto times_of = [&](size_t side) {
    return MethodTimes{best[side] / static_cast<double>(batch), best[batch > 1 ? sides.size() + side : side]};
  };
  MethodBenchRow row{
      problem.network,
      spec,
      batch,
      threads(),
      context.precision == Precision::kF32 ? "f32" : "bf16",
      subject.on_engine ? std::string(best_kernel_set(context.precision).name) : "eager libtorch",
      attributed(*sides[0], one, context).made[0].passes,
      times_of(0),
      {}};
  if (options.peer) row.peer = times_of(1);
  return row;
}

}  // namespace

std::vector<MethodProblem> method_problems(bool with_long) {
  std::vector<MethodProblem> list;
  for (const Problem& p : problems_of("methods", 1, with_long)) {
    MethodProblem problem{static_cast<int64_t>(p.sizes[0]), {}, {}, {}};
    std::istringstream words(p.words);
    words >> problem.network >> problem.architecture;
    for (std::string method; words >> method;) problem.methods.push_back(method);
    if (problem.methods.empty() || problem.batch < 1)
      throw input_error("methods.txt: expected a batch, a name, an architecture and methods, found '{} {}'",
                        p.sizes[0], printable(p.words));
    list.push_back(std::move(problem));
  }
  return list;
}

std::vector<MethodBenchRow> bench_methods(const MethodBenchOptions& options, const Context& context) {
  const auto problems = method_problems(options.long_list);
  int64_t count = 0;
  for (const auto& problem : problems) count += static_cast<int64_t>(problem.methods.size());
  auto progress = context.progress("methods", count);
  std::vector<MethodBenchRow> rows;
  for (const auto& problem : problems) {
    const Subject subject = make_subject(problem.architecture, context);
    if (!subject.target)
      throw input_error("methods.txt: expected a classifier, found the encoder {}", problem.architecture);
    for (const auto& spec : problem.methods) {
      rows.push_back(measured(problem, spec, subject, options, context));
      progress.advance(1, problem.network + " " + spec);
    }
  }
  return rows;
}

nlohmann::ordered_json json_from(const MethodBenchRow& r) {
  const auto times = [](const MethodTimes& t) {
    return nlohmann::ordered_json{{"ms", t.ms}, {"alone_ms", t.alone_ms}};
  };
  nlohmann::ordered_json json = {
      {"network", r.network},
      {"method", r.method},
      {"batch", r.batch},
      {"threads", r.threads},
      {"precision", r.precision},
      {"kernels", r.kernels},
      {"passes", {{"forwards", r.passes.forwards}, {"backwards", r.passes.backwards}}}};
  json.update(times(r.times));
  if (r.peer) json["peer"] = times(*r.peer);
  return json;
}

std::string table_from(const std::vector<MethodBenchRow>& rows) {
  const bool peer = !rows.empty() && rows[0].peer;
  std::string text =
      fmt::format("  {:<12} {:<24} {:<4} {:>16} {:>5} {:>10} {:>17} {:>10} {:>17}\n", "ms per map", "", "",
                  "passes", "batch", "in batch", peer ? "eager" : "", "alone", peer ? "eager" : "");
  // "12.34   eager 56.78 (4.60x)"
  const auto cells = [](double own, const std::optional<double>& theirs) {
    return fmt::format("{:>10.3f} {:>17}", own,
                       theirs ? fmt::format("{:.3f} ({:.2f}x)", *theirs, *theirs / own) : std::string());
  };
  for (const auto& r : rows) {
    const auto of_peer = [&](double MethodTimes::*time) {
      return r.peer ? std::optional<double>((*r.peer).*time) : std::nullopt;
    };
    text += fmt::format("  {:<12} {:<24} {:<4} {:>16} {:>5} {} {}\n", r.network, r.method, r.precision,
                        text_from_passes(r.passes), r.batch, cells(r.times.ms, of_peer(&MethodTimes::ms)),
                        cells(r.times.alone_ms, of_peer(&MethodTimes::alone_ms)));
  }
  return text;
}

}  // namespace aha
