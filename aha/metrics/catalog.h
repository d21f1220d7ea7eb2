// All metrics by name: what each is, which direction is good, and how it follows from a sweep.
#pragma once

#include <string>
#include <vector>

#include "aha/metrics/sweep.h"

namespace aha {

struct MetricRecord {
  std::string name, summary;
  bool higher_is_better = false;
  std::vector<std::string> parts;  // a difference comes with its parts
  double (*of)(const SweepCurves&, AreaRule) = nullptr;
};

const std::vector<MetricRecord>& metric_catalog();

// Input error that lists the names.
const MetricRecord& metric_record(const std::string& name);

// The asked ones in the catalog's order, each difference with its parts; an unknown name is an input error.
std::vector<MetricRecord> metrics_from_names(const std::vector<std::string>& names);

}  // namespace aha
