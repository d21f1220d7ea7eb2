#include "aha/bench/networks_section.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/bench/bench_network.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

constexpr std::pair<const char*, std::optional<double> NetworkFigures::*> kOptionalFigures[] = {
    {"forward_backward_ms", &NetworkFigures::forward_backward_ms},
    {"memory_mb", &NetworkFigures::memory_mb},
    {"masks_mb", &NetworkFigures::masks_mb}};

struct NetworkProblem {
  std::string name, architecture;
  int64_t batch = 1;
};

std::vector<NetworkProblem> problems(const NetworkBenchOptions& options, const Context& context) {
  std::vector<NetworkProblem> list;
  std::vector<std::string> names;
  for (const Problem& p : problems_of("networks", 1, options.long_list || !options.network.empty())) {
    const auto [name, architecture] = name_and_architecture(p);
    const auto batch = context.batch_size > 0 ? context.batch_size : p.size(0);
    names.push_back(name);
    if (options.network.empty() || options.network == name) list.push_back({name, architecture, batch});
  }
  if (list.empty()) throw unknown_name_error("network", options.network, names);
  return list;
}

using Forward = std::function<Tensor(const Tensor&)>;

void run_forward(const Forward& forward, const Tensor& pixels) {
  const torch::NoGradGuard no_grad;
  forward(pixels);
}

void run_backward(const Forward& forward, const Tensor& pixels) {
  const Tensor x = pixels.clone().requires_grad_();
  forward(x).sum().backward();
}

double packed_mb(const Subject& subject) {
  return static_cast<double>(subject.packed_bytes) / (1 << 20);
}

struct Measured {
  NetworkFigures own;
  std::optional<NetworkFigures> peer;
};

// Megabytes for kMasks perturbed images of one image, forward and back to their masks: on the engine, or with
// all of them as one batch of eager libtorch.
std::optional<double> masks_mb(Subject& subject, bool eager) {
  const int64_t size = subject.size, side = size / 4;  // regions of 4 x 4 pixels
  const Tensor image = torch::rand({1, 3, size, size}), keep = torch::rand({1, kMasks, side * side});
  if (eager) {
    run_forward(subject.eager_forward, image);  // the libraries' own buffers
    return peak_mb([&] {
      const Tensor masks = keep.view({kMasks, 1, side, side}).clone().requires_grad_();
      const Tensor shown = torch::upsample_nearest2d(masks, at::IntArrayRef{size, size});
      torch::softmax(subject.eager_forward(shown * image), 1).select(1, 0).sum().backward();
    });
  }
  const Tensor row = torch::arange(size).div(4, "floor");
  const Tensor region = (row.unsqueeze(1) * side + row).to(torch::kInt32);  // (H, W)
  auto mb = peak_mb([&] {
    subject.target->perturbed_scores(
        {image, torch::zeros_like(image), region, keep, torch::zeros({1}, torch::kInt64)}, true);
  });
  if (mb) *mb += packed_mb(subject);
  return mb;
}

Measured measure(const Subject& subject, int64_t batch, const NetworkBenchOptions& options,
                 const Context& context) {
  const Tensor pixels = torch::rand({batch, 3, subject.size, subject.size});
  const auto memory_of = [&](const Forward& forward) {
    return peak_mb(
        [&] { subject.differentiable ? run_backward(forward, pixels) : run_forward(forward, pixels); });
  };
  std::vector<Forward> sides = {options.eager ? subject.eager_forward : subject.forward};
  if (options.peer) sides.push_back(subject.eager_forward);
  std::vector<NetworkFigures> figures(sides.size());
  for (size_t i = 0; i < sides.size(); ++i) {
    // OpenBLAS and oneDNN make buffers at their first call that belong to no network; the engine's first call
    // makes what it keeps. Its packed weights are there already.
    const bool eager = i > 0 || options.eager;
    if (eager) run_forward(sides[i], pixels.slice(0, 0, 1));
    figures[i].memory_mb = memory_of(sides[i]);
    if (figures[i].memory_mb && !eager) *figures[i].memory_mb += packed_mb(subject);
  }
  std::vector<std::function<void()>> pieces;
  for (const auto& side : sides) pieces.push_back([&] { run_forward(side, pixels); });
  if (subject.differentiable)
    for (const auto& side : sides) pieces.push_back([&] { run_backward(side, pixels); });
  const auto best = best_ms_each(pieces, TimeKind::kWall, {options.seconds, 3}, context);
  for (size_t i = 0; i < sides.size(); ++i) {
    figures[i].forward_ms = best[i] / static_cast<double>(batch);
    if (subject.differentiable)
      figures[i].forward_backward_ms = best[sides.size() + i] / static_cast<double>(batch);
  }
  return {figures[0], options.peer ? std::optional(figures[1]) : std::nullopt};
}

}  // namespace

std::vector<NetworkRow> bench_networks(const NetworkBenchOptions& options, const Context& context) {
  const auto list = problems(options, context);
  auto progress = context.progress("networks", static_cast<int64_t>(list.size()));
  const bool one_precision =
      options.eager || &best_kernel_set(Precision::kF32) == &best_kernel_set(Precision::kBf16);
  std::vector<NetworkRow> rows;
  for (const NetworkProblem& p : list) {
    const auto shipped = options.as_shipped ? options.as_shipped(p.name) : std::nullopt;
    Measured measured;
    bool on_engine = false;
    for (const auto precision : {Precision::kF32, Precision::kBf16}) {
      const bool f32 = precision == Precision::kF32;
      if (f32 || !one_precision) {
        Context at_precision = context;
        at_precision.precision = precision;
        const Subject subject = make_subject(p.architecture, at_precision);
        measured = measure(subject, p.batch, options, context);
        on_engine = !options.eager && subject.on_engine;
        if (on_engine && subject.differentiable) {
          // One that has no workspace yet: it counts.
          Subject fresh = make_subject(p.architecture, at_precision);
          measured.own.masks_mb = masks_mb(fresh, false);
          if (measured.peer) measured.peer->masks_mb = masks_mb(fresh, true);
        }
      }
      rows.push_back({p.name, p.architecture, p.batch, threads(), f32 ? "f32" : "bf16",
                      on_engine ? std::string(best_kernel_set(precision).name) : "eager libtorch",
                      measured.own, measured.peer, shipped});
      if (options.eager) break;  // libtorch has float32 alone
    }
    progress.advance(1, p.name);
  }
  return rows;
}

nlohmann::ordered_json json_from(const NetworkFigures& f) {
  nlohmann::ordered_json json = {{"forward_ms", f.forward_ms}};
  for (const auto& [name, member] : kOptionalFigures)
    if (f.*member) json[name] = *(f.*member);
  return json;
}

NetworkFigures network_figures_from_json(const nlohmann::json& row) {
  NetworkFigures f;
  f.forward_ms = row.at("forward_ms");
  for (const auto& [name, member] : kOptionalFigures)
    if (row.contains(name)) f.*member = row[name].get<double>();
  return f;
}

nlohmann::ordered_json json_from(const NetworkRow& r) {
  nlohmann::ordered_json json = {{"name", r.name},           {"architecture", r.architecture},
                                 {"batch", r.batch},         {"threads", r.threads},
                                 {"precision", r.precision}, {"kernels", r.kernels}};
  json.update(json_from(r.figures));
  if (r.peer) json["peer"] = json_from(*r.peer);
  if (r.peer_as_shipped) json["peer_as_shipped"] = json_from(*r.peer_as_shipped);
  return json;
}

std::string table_from(const std::vector<NetworkRow>& rows) {
  // "12.34   5.6x   20.1x": our time, then how much longer eager libtorch takes, tuned and as
  // shipped.
  const auto cells = [](const NetworkRow& r, const auto& of) {
    const std::optional<double> own = of(r.figures);
    if (!own) return fmt::format("{:>9} {:>7} {:>7}", "", "", "");
    const auto ratio = [&](const std::optional<NetworkFigures>& peer) {
      const std::optional<double> theirs = peer ? of(*peer) : std::nullopt;
      return theirs ? fmt::format("{:.2f}x", *theirs / *own) : std::string();
    };
    return fmt::format("{:>9.3f} {:>7} {:>7}", *own, ratio(r.peer), ratio(r.peer_as_shipped));
  };
  const bool peer = !rows.empty() && rows[0].peer;
  std::string text =
      fmt::format("  {:<17} {:<4} {:>5} {:<14} {:>9} {:>7} {:>7} {:>9} {:>7} {:>7} {:>9}\n", "ms per image",
                  "", "batch", "kernels", "forward", peer ? "eager" : "", peer ? "shipped" : "", "+ back",
                  peer ? "eager" : "", peer ? "shipped" : "", "MB");
  for (const auto& r : rows) {
    text += fmt::format("  {:<17} {:<4} {:>5} {:<14} {} {}", r.name, r.precision, r.batch, r.kernels,
                        cells(r, [](const NetworkFigures& f) { return std::optional<double>(f.forward_ms); }),
                        cells(r, [](const NetworkFigures& f) { return f.forward_backward_ms; }));
    if (r.figures.memory_mb) text += fmt::format(" {:>9.0f}", *r.figures.memory_mb);
    if (r.peer && r.peer->memory_mb) text += fmt::format(" (eager {:.0f})", *r.peer->memory_mb);
    text += "\n";
  }
  if (std::ranges::any_of(rows, [](const NetworkRow& r) { return r.figures.masks_mb.has_value(); }))
    text +=
        fmt::format("\n  {} perturbed images forward and back to their masks, MB at the highest\n", kMasks);
  for (const auto& r : rows) {
    if (!r.figures.masks_mb) continue;
    text +=
        fmt::format("  {:<17} {:<4} {:<14} {:>9.0f}", r.name, r.precision, r.kernels, *r.figures.masks_mb);
    if (r.peer && r.peer->masks_mb)
      text +=
          fmt::format(" (eager {:.0f}, {:.2f}x)", *r.peer->masks_mb, *r.peer->masks_mb / *r.figures.masks_mb);
    text += "\n";
  }
  return text;
}

}  // namespace aha
