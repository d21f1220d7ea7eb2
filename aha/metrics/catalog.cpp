#include "aha/metrics/catalog.h"

#include <set>

#include "aha/base/error.h"

namespace aha {
namespace {

double deletion(const SweepCurves& c, AreaRule rule) {
  return deletion_area(c.top, rule);
}
double insertion(const SweepCurves& c, AreaRule rule) {
  return insertion_area(c.bottom, rule);
}
double positive(const SweepCurves& c, AreaRule rule) {
  return deletion_area(c.top_hits, rule);
}
double negative(const SweepCurves& c, AreaRule rule) {
  return insertion_area(c.bottom_hits, rule);
}

}  // namespace

const std::vector<MetricRecord>& metric_catalog() {
  static const std::vector<MetricRecord> list = {
      {"deletion", "probability while the most important pixels are removed", false, {}, deletion},
      {"insertion", "probability while the most important pixels are inserted", true, {}, insertion},
      {"ins-del",
       "insertion minus deletion",
       true,
       {"deletion", "insertion"},
       [](const SweepCurves& c, AreaRule rule) { return insertion(c, rule) - deletion(c, rule); }},
      {"positive",
       "share of images still recognized while the most important pixels are removed",
       false,
       {},
       positive},
      {"negative",
       "share of images still recognized while the least important pixels are removed",
       true,
       {},
       negative},
      {"neg-pos",
       "negative minus positive",
       true,
       {"positive", "negative"},
       [](const SweepCurves& c, AreaRule rule) { return negative(c, rule) - positive(c, rule); }},
  };
  return list;
}

const MetricRecord& metric_record(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& record : metric_catalog()) {
    if (record.name == name) return record;
    names.push_back(record.name);
  }
  throw unknown_name_error("metric", name, names);
}

std::vector<MetricRecord> metrics_from_names(const std::vector<std::string>& names) {
  std::set<std::string> wanted;
  for (const auto& name : names) {
    const auto& record = metric_record(name);
    wanted.insert(name);
    wanted.insert(record.parts.begin(), record.parts.end());
  }
  std::vector<MetricRecord> out;
  for (const auto& record : metric_catalog())
    if (wanted.contains(record.name)) out.push_back(record);
  return out;
}

}  // namespace aha
