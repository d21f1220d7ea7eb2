#include "aha/evaluate/given_maps.h"

#include "aha/tensor/torch.h"

#include <set>

#include "aha/base/error.h"
#include "aha/evaluate/image_batch.h"
#include "aha/evaluate/map_rows.h"
#include "aha/metrics/curve.h"
#include "aha/perturb/reference.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

constexpr int64_t kGivenBatch = 8;
constexpr const char* kGiven = "given";  // the explained class

void check_given(const std::vector<GivenMaps>& given, int64_t images) {
  if (given.empty()) throw input_error("maps: expected those of one method or more, found none");
  std::set<std::string> names;
  for (const auto& one : given) {
    if (!names.insert(one.name).second)
      throw input_error("maps: expected every name once, found {} twice", printable(one.name));
    if (one.maps.dim() != 3 || one.maps.size(0) != images || one.maps.numel() == 0)
      throw input_error("maps of {}: expected shape ({}, h, w), found ({})", printable(one.name), images,
                        fmt::join(one.maps.sizes(), ", "));
  }
}

void check_measurable(const std::vector<MetricRecord>& metrics) {
  for (const auto& metric : metrics) {
    if (metric.need == MetricNeed::kCurves || metric.need == MetricNeed::kMap) continue;
    throw input_error(
        "metric {}: {}, which is not there with maps alone; `aha eval` measures it", metric.name,
        metric.need == MetricNeed::kExplain ? "explains again, with a method" : "looks at masks or boxes");
  }
}

}  // namespace

Tensor maps_at_size(const Tensor& maps, int64_t H, int64_t W) {
  if (maps.size(1) == H && maps.size(2) == W) return maps;
  const Tensor planes = maps.unsqueeze(1);
  // Where it shrinks, every value counts.
  return (maps.size(1) <= H && maps.size(2) <= W ? at::upsample_bilinear2d(planes, {H, W}, false)
                                                 : at::_upsample_bilinear2d_aa(planes, {H, W}, false))
      .squeeze(1);
}

Fields fields(GivenMapsOptions& o) {
  return Fields()
      .add("metrics", o.metrics, "metrics; a difference brings its parts; default: the protocol's")
      .add("references", o.references, "what replaces removed pixels; default: the protocol's")
      .choices({"black", "mean", "blur", "gray"})
      .add("protocol", o.protocol, "named settings, NAME or NAME:key=value")
      .nest("", fields(o.changes))
      .add("score", o.score, "how the target's answer for the class is measured")
      .choices({"probability", "logit", "log-odds"})
      .add("ci", o.ci, "level of the intervals")
      .range(0.5, 0.999);
}

Summary evaluate_given_maps(Classifier& target, const Tensor& pixels, const Tensor& classes,
                            const std::vector<std::string>& names, const std::vector<GivenMaps>& given,
                            const GivenMapsOptions& options, const Context& context) {
  const int64_t N = pixels.size(0), H = pixels.size(2), W = pixels.size(3);
  check_given(given, N);
  ProtocolChanges changes = options.changes;
  changes.references = options.references;
  Protocol protocol = changed(protocol_named(options.protocol), changes);
  const auto asked = options.metrics.empty() ? protocol.metrics : options.metrics;
  const auto metrics = metrics_from_names(asked);
  check_measurable(metrics);
  const auto measured = measured_metrics(asked);
  if (std::none_of(metrics.begin(), metrics.end(),
                   [](const MetricRecord& metric) { return metric.need == MetricNeed::kCurves; }))
    protocol.steps = 0;  // nobody looks at curves
  const ClassifierInfo& info = target.info();
  ReferenceOptions reference = with_mean_color(protocol.reference, info.mean_color);
  reference.gray.assign(info.input.mean.begin(), info.input.mean.end());
  const ScoreKind score = score_kind_from_text(options.score);

  SummaryOptions wanted;
  for (const auto& one : given) wanted.methods.push_back(one.name);
  wanted.explained = {kGiven};
  wanted.references = protocol.references;
  wanted.deletion_references = references_of(protocol, false);
  wanted.insertion_references = references_of(protocol, true);
  wanted.metrics = metrics;
  wanted.rule = area_rule_from_text(protocol.area);
  wanted.level = options.ci;
  wanted.seed = context.seed;
  for (int64_t i = 0; i < N; ++i) wanted.images.push_back(std::to_string(i));

  RowTable table;
  ScoreQueue questions(target, H, W, context);
  const auto progress_total = N;
  auto progress = context.progress("evaluate", progress_total);
  for (int64_t first = 0; first < N; first += kGivenBatch) {
    context.cancel->check();
    const int64_t B = std::min(kGivenBatch, N - first);
    ImageBatch batch;
    for (int64_t i = first; i < first + B; ++i) {
      batch.index.push_back(i);
      batch.images.push_back({names[static_cast<size_t>(i)], "", -1});
      batch.annotations.emplace_back();
    }
    batch.pixels = pixels.narrow(0, first, B);
    ask_target(batch, target, protocol.references, reference, context);
    batch.classes[kGiven] = classes.narrow(0, first, B);
    if (!batch.clean.isfinite().all().item<bool>())
      throw work_error("{} gives no finite probability for one of the images", info.name);
    std::vector<std::vector<RowTable::MeasuredRow>> of_image(static_cast<size_t>(B));
    for (const auto& one : given) {
      const Tensor maps = maps_at_size(one.maps.narrow(0, first, B).to(torch::kFloat32), H, W).contiguous();
      const Attribution made(maps, Passes{});
      PendingRows pending(questions, batch, made, {one.name, kGiven, sweep_options(protocol, score)},
                          context);
      std::vector<int64_t> usable;
      for (int64_t b = 0; b < B; ++b)
        if (state_of_map(maps[b], "") == "ok") usable.push_back(b);
      const auto images = metric_images(chosen_images(batch, usable), kGiven);
      const Tensor usable_maps = maps.index_select(0, torch::tensor(usable, torch::kInt64));
      std::vector<Metric::Pending> values;
      for (const auto& group : measured)
        if (!usable.empty())
          values.push_back(
              group.metric->measure({target, images, usable_maps, questions, score, {}, context}));
      questions.flush();
      auto rows = pending.finish(info.name);
      for (int64_t b = 0; b < B; ++b) {
        rows[static_cast<size_t>(b)].image = std::to_string(first + b);
        of_image[static_cast<size_t>(b)].push_back({std::move(rows[static_cast<size_t>(b)]), {}});
      }
      for (auto& finish : values) {
        const auto found = finish();
        for (size_t i = 0; i < usable.size(); ++i)
          of_image[static_cast<size_t>(usable[i])].back().values.push_back(found[i]);
      }
    }
    for (const auto& rows : of_image) table.add(rows, wanted);
    progress.advance(B);
  }
  return summarize(table, wanted);
}

}  // namespace aha
