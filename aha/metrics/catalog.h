// All metrics by name: what each is, which direction is good, and what it needs.
#pragma once

#include <string>
#include <vector>

#include "aha/metrics/metric.h"

namespace aha {

const std::vector<MetricRecord>& metric_catalog();

// Input error that lists the names.
const MetricRecord& metric_record(const std::string& name);

// The asked ones in the catalog's order, each difference with its parts; an unknown name is an input error.
// A spec is NAME or NAME:option=value:option=value.
std::vector<MetricRecord> metrics_from_names(const std::vector<std::string>& specs);

// Of the asked ones, those that measure something beside the curves: records that share a Metric are one.
struct MeasuredMetrics {
  std::string identity;  // names and options: what the values depend on
  MetricNeed need;
  std::unique_ptr<Metric> metric;
};
std::vector<MeasuredMetrics> measured_metrics(const std::vector<std::string>& specs);

// The value of one reference's curves; a difference is that of its parts. Of metrics that need curves.
double value_of_curves(const MetricRecord& record, const SweepCurves& curves, AreaRule rule);

}  // namespace aha
