#include "aha/metrics/catalog.h"

#include <algorithm>
#include <set>

#include "aha/base/error.h"
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

double deletion(const SweepCurves& c, AreaRule rule) {
  return deletion_area(c.top, rule);
}
double insertion(const SweepCurves& c, AreaRule rule) {
  return insertion_area(c.bottom, rule);
}
double positive(const SweepCurves& c, AreaRule rule) {
  return deletion_area(c.top_hits, rule_of_hits(rule));
}
double negative(const SweepCurves& c, AreaRule rule) {
  return insertion_area(c.bottom_hits, rule_of_hits(rule));
}

std::string name_of(const std::string& spec) {
  return spec.substr(0, spec.find(':'));
}

std::vector<MetricRecord> single_metrics() {
  constexpr auto kCurves = MetricNeed::kCurves;
  constexpr bool kHigher = true, kLower = false;
  return {
      {"deletion",
       "probability while the most important pixels are removed",
       "Petsiuk et al. 2018, RISE",
       kCurves,
       kLower,
       {},
       deletion},
      {"insertion",
       "probability while the most important pixels are inserted",
       "Petsiuk et al. 2018, RISE",
       kCurves,
       kHigher,
       {},
       insertion},
      {"ins-del", "insertion minus deletion", "", kCurves, kHigher, {"deletion", "insertion"}},
      {"positive",
       "share of images still recognized while the most important pixels are removed",
       "Chefer et al. 2021",
       kCurves,
       kLower,
       {},
       positive},
      {"negative",
       "share of images still recognized while the least important pixels are removed",
       "Chefer et al. 2021",
       kCurves,
       kHigher,
       {},
       negative},
      {"neg-pos", "negative minus positive", "", kCurves, kHigher, {"positive", "negative"}},
      adp_metric(),
      pic_metric(),
      saco_metric(),
      idsds_metric(),
      sparseness_metric(),
      infidelity_metric(),
      sensitivity_max_metric(),
      class_sensitivity_metric(),
      random_class_leakage_metric(),
      parameter_randomization_metric(),
      randomization_unchanged_metric(),
      model_gap_metric(),
  };
}

}  // namespace

const std::vector<MetricRecord>& metric_catalog() {
  static const std::vector<MetricRecord> list = [] {
    auto all = single_metrics();
    for (const auto& group : {road_metrics(), mas_metrics(), segmentation_metrics(), localization_metrics()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return list;
}

double value_of_curves(const MetricRecord& record, const SweepCurves& curves, AreaRule rule) {
  if (record.parts.empty()) return record.of_curves(curves, rule);
  return value_of_curves(metric_record(record.parts[1]), curves, rule) -
         value_of_curves(metric_record(record.parts[0]), curves, rule);
}

Tensor scaled_to_unit(const Tensor& map) {
  const Tensor values = map.detach().to(torch::kCPU, torch::kFloat32);
  const Tensor least = values.min(), range = values.max() - least;
  return range.item<float>() > 0 ? ((values - least) / range).contiguous()
                                 : torch::zeros_like(values).contiguous();
}

Tensor host_image(const Tensor& image) {
  return image.detach().to(torch::kCPU, torch::kFloat32).contiguous();
}

Tensor normal_zero(const Classifier& target, const Tensor& pixels) {
  const auto& mean = target.info().input.mean;
  return torch::tensor({mean[0], mean[1], mean[2]}, torch::kFloat32)
      .view({3, 1, 1})
      .expand_as(pixels)
      .contiguous();
}

const MetricRecord& metric_record(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& record : metric_catalog()) {
    if (record.name == name) return record;
    names.push_back(record.name);
  }
  throw unknown_name_error("metric", name, names);
}

std::vector<MetricRecord> metrics_from_names(const std::vector<std::string>& specs) {
  std::set<std::string> wanted;
  for (const auto& spec : specs) {
    const auto& record = metric_record(name_of(spec));
    wanted.insert(record.name);
    wanted.insert(record.parts.begin(), record.parts.end());
  }
  std::vector<MetricRecord> out;
  for (const auto& record : metric_catalog())
    if (wanted.contains(record.name)) out.push_back(record);
  return out;
}

std::vector<MeasuredMetrics> measured_metrics(const std::vector<std::string>& specs) {
  std::vector<MeasuredMetrics> out;
  std::set<void*> made;
  for (const auto& record : metrics_from_names(specs)) {
    if (!record.make || !made.insert(reinterpret_cast<void*>(record.make)).second) continue;
    MeasuredMetrics one{"", record.need, record.make()};
    Fields fields = one.metric->fields();
    std::vector<std::string> together;  // all records of this Metric, whichever of them is asked for
    for (const auto& other : metric_catalog())
      if (other.make == record.make) together.push_back(other.name);
    for (const auto& spec : specs) {
      const auto& asked = metric_record(name_of(spec));
      const auto belongs = [&](const std::string& name) {
        return std::find(together.begin(), together.end(), name) != together.end();
      };
      if (const size_t colon = spec.find(':');
          colon != std::string::npos &&
          (belongs(asked.name) || std::any_of(asked.parts.begin(), asked.parts.end(), belongs)))
        set_all_from_spec(fields, std::string_view(spec).substr(colon + 1), "metric " + asked.name);
    }
    one.identity = fmt::format("{} {}", fmt::join(together, "+"), json_from_fields(fields).dump());
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace aha
