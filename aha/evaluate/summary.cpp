#include "aha/evaluate/summary.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "aha/base/error.h"

namespace aha {
namespace {

const Row& row_of(const RowTable& table, const std::string& image, const std::string& method,
                  const std::string& explained) {
  const auto at = table.rows.find({image, method, explained});
  if (at == table.rows.end()) throw work_error("no row of {} for {} ({} class)", method, image, explained);
  return *at->second;
}

// Into s.images those that every method explained; the others are counted by the first reason.
void find_common(const RowTable& table, const SummaryOptions& o, Summary& s) {
  for (const auto& image : o.images) {
    if (const auto at = table.unusable_images.find(image); at != table.unusable_images.end()) {
      s.failures.push_back({image, "", "", at->second});
      ++s.left_out["unreadable"];
      continue;
    }
    std::string reason;
    for (const auto& explained : o.explained)
      for (const auto& method : o.methods) {
        const Row& row = row_of(table, image, method, explained);
        if (row.failed()) s.failures.push_back({image, method, explained, row.state});
        if (reason.empty() && !row.ok()) reason = method + ": " + (row.failed() ? "failed" : row.state);
      }
    if (reason.empty())
      s.images.push_back(image);
    else
      ++s.left_out[reason];
  }
}

std::string reasons_text(const std::map<std::string, int64_t>& left_out) {
  std::string out;
  for (const auto& [reason, count] : left_out) out += fmt::format("; {}: {} images", reason, count);
  return out;
}

void add_to(std::vector<double>& sum, const std::vector<double>& values, double weight) {
  sum.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sum[i] += weight * values[i];
}

void add_to(SweepCurves& sum, const SweepCurves& c, double weight) {
  add_to(sum.top, c.top, weight);
  add_to(sum.bottom, c.bottom, weight);
  add_to(sum.top_hits, c.top_hits, weight);
  add_to(sum.bottom_hits, c.bottom_hits, weight);
}

using Parts = std::map<std::string, double>;  // by reference, or by what a metric calls its sums

// What a map is worth by a metric; nothing where it was not measured.
std::optional<Parts> parts_of(const MetricRecord& metric, const Row& row,
                              const std::vector<const MetricValues*>& values, const SummaryOptions& o) {
  Parts out;
  if (!metric.parts.empty()) {
    const auto less = parts_of(metric_record(metric.parts[0]), row, values, o),
               more = parts_of(metric_record(metric.parts[1]), row, values, o);
    if (!less || !more) return std::nullopt;
    for (const auto& [part, value] : *more) out[part] = value - less->at(part);
    return out;
  }
  if (metric.need == MetricNeed::kCurves) {
    for (const auto& reference : o.references)
      out[reference] = metric.of_curves(row.curves.at(reference), o.rule);
    return out;
  }
  for (const MetricValues* measured : values)
    for (const auto& [name, value] : measured->values)
      if (name == metric.name)
        out[""] = value;
      else if (name.starts_with(metric.name + "@"))
        out[name.substr(metric.name.size() + 1)] = value;
  return out.empty() ? std::nullopt : std::optional(out);
}

double value_of(const MetricRecord& metric, const Parts& means) {
  if (metric.of_means) return metric.of_means(means);
  double sum = 0;
  for (const auto& [part, value] : means) sum += value;
  return sum / static_cast<double>(means.size());
}

// One number for each image, so that intervals and paired tests work on any metric: the value of a metric
// that is a mean, a jackknife pseudo-value n g(all) - (n - 1) g(all but this one) of any other.
std::vector<double> numbers_of(const MetricRecord& metric, const std::vector<Parts>& images) {
  std::vector<double> out;
  if (!metric.of_means) {
    for (const Parts& one : images) out.push_back(value_of(metric, one));
    return out;
  }
  const double n = static_cast<double>(images.size());
  Parts sums;
  for (const Parts& one : images)
    for (const auto& [part, value] : one) sums[part] += value;
  const auto value_without = [&](const Parts& left_out, double count) {
    Parts means;
    for (const auto& [part, sum] : sums) {
      const auto at = left_out.find(part);
      means[part] = (sum - (at == left_out.end() ? 0 : at->second)) / count;
    }
    return metric.of_means(means);
  };
  const double all = value_without({}, n);
  for (const Parts& one : images) out.push_back(n > 1 ? n * all - (n - 1) * value_without(one, n - 1) : all);
  return out;
}

const std::vector<const MetricValues*>& values_of(const RowTable& rows, const std::string& image,
                                                  const std::string& method, const std::string& explained) {
  static const std::vector<const MetricValues*> none;
  const auto at = rows.values.find({image, method, explained});
  return at == rows.values.end() ? none : at->second;
}

MethodSummary method_summary(const RowTable& rows, const SummaryOptions& o,
                             const std::vector<std::string>& images, size_t index,
                             const std::string& explained) {
  MethodSummary out;
  const std::string& method = o.methods[index];
  out.method = method;
  out.explained = explained;
  if (!rows.timings.empty()) out.timing = rows.timings[index];
  for (const auto& image : o.images)
    if (!rows.unusable_images.contains(image)) {
      const Row& row = row_of(rows, image, method, explained);
      out.unusable += !row.ok();
      out.constant += !row.ok() && !row.failed();
    }
  const double n = static_cast<double>(images.size()), R = static_cast<double>(o.references.size());
  for (const auto& image : images) {
    const Row& row = row_of(rows, image, method, explained);
    out.tie_rate += row.tie_rate / n;
    out.passes.forwards += row.made.passes.forwards / n;
    out.passes.backwards += row.made.passes.backwards / n;
    out.steps += row.made.steps / n;
    for (const auto& [reference, c] : row.curves) {
      add_to(out.curves[reference], c, 1 / n);
      add_to(out.mean_curves, c, 1 / (n * R));
    }
  }
  return out;
}

// The metric of every method, over the images where all of them could be measured.
void add_metric(const MetricRecord& metric, const RowTable& rows, const SummaryOptions& o,
                const std::vector<std::string>& images, const std::vector<MethodSummary*>& methods) {
  std::vector<std::vector<Parts>> parts(methods.size());
  std::vector<size_t> measured;
  for (size_t i = 0; i < images.size(); ++i) {
    std::vector<Parts> of_image;
    for (const auto* method : methods)
      if (auto one = parts_of(metric, row_of(rows, images[i], method->method, method->explained),
                              values_of(rows, images[i], method->method, method->explained), o))
        of_image.push_back(std::move(*one));
    if (of_image.size() < methods.size()) continue;
    measured.push_back(i);
    for (size_t m = 0; m < methods.size(); ++m) parts[m].push_back(std::move(of_image[m]));
  }
  for (size_t m = 0; m < methods.size(); ++m) {
    MetricSummary& out = methods[m]->metrics[metric.name];
    const auto numbers = numbers_of(metric, parts[m]);
    out.images = static_cast<int64_t>(measured.size());
    out.per_image.assign(images.size(), std::nan(""));
    for (size_t i = 0; i < measured.size(); ++i) {
      out.per_image[measured[i]] = numbers[i];
      for (const auto& [part, value] : parts[m][i])
        if (std::find(o.references.begin(), o.references.end(), part) != o.references.end())
          out.per_reference[part] += value / static_cast<double>(measured.size());
    }
    out.value = bootstrap(numbers, o.seed);
    if (metric.of_means && !measured.empty()) {  // the mean of pseudo-values is only nearly the value
      Parts means;
      for (const Parts& one : parts[m])
        for (const auto& [part, value] : one) means[part] += value / static_cast<double>(measured.size());
      const double shift = metric.of_means(means) - out.value.mean;
      out.value = {out.value.mean + shift, out.value.low + shift, out.value.high + shift};
    }
  }
}

std::vector<double> measured_only(const std::vector<double>& values) {
  std::vector<double> out;
  std::copy_if(values.begin(), values.end(), std::back_inserter(out),
               [](double v) { return !std::isnan(v); });
  return out;
}

// Each method against the best other one, by the metric's own direction.
void compare(std::vector<MethodSummary*> rows, const MetricRecord& metric, uint64_t seed) {
  if (rows.size() < 2 || rows[0]->metrics.at(metric.name).images == 0) return;
  const double sign = metric.higher_is_better ? 1 : -1;
  const auto mean_of = [&](const MethodSummary* row) {
    return sign * row->metrics.at(metric.name).value.mean;
  };
  for (MethodSummary* row : rows) {
    const MethodSummary* best = nullptr;
    for (const MethodSummary* other : rows)
      if (other != row && (!best || mean_of(other) > mean_of(best))) best = other;
    MetricSummary& mine = row->metrics.at(metric.name);
    const auto own = measured_only(mine.per_image),
               theirs = measured_only(best->metrics.at(metric.name).per_image);
    mine.rival = best->method;
    mine.difference = paired_difference(own, theirs, seed);
    if (!metric.higher_is_better) mine.difference.win_rate = 1 - mine.difference.win_rate;
    std::vector<double> differences(theirs.size());
    for (size_t i = 0; i < theirs.size(); ++i) differences[i] = own[i] - theirs[i];
    constexpr double kPower = 1.959964 + 0.841621;  // normal quantiles of 97.5 % and 80 %
    mine.detectable = kPower * standard_deviation(differences) /
                      std::sqrt(static_cast<double>(std::max<size_t>(1, theirs.size())));
  }
  std::sort(rows.begin(), rows.end(), [&](auto* a, auto* b) {
    return a->metrics.at(metric.name).difference.p_value < b->metrics.at(metric.name).difference.p_value;
  });
  double floor = 0;
  for (size_t i = 0; i < rows.size();
       ++i) {  // Holm: the smallest p times m, the next times m - 1, never falling
    auto& mine = rows[i]->metrics.at(metric.name);
    floor = std::max(floor, std::min(1.0, mine.difference.p_value * static_cast<double>(rows.size() - i)));
    mine.corrected_p = floor;
  }
}

double agreement(const std::vector<MethodSummary*>& rows, const std::string& metric,
                 const std::vector<std::string>& references) {
  double sum = 0;
  int pairs = 0;
  for (size_t i = 0; i < references.size(); ++i)
    for (size_t j = i + 1; j < references.size(); ++j, ++pairs) {
      std::vector<double> a, b;
      for (const auto* row : rows) {
        const auto& means = row->metrics.at(metric).per_reference;
        if (!means.contains(references[i]) || !means.contains(references[j])) continue;
        a.push_back(means.at(references[i]));
        b.push_back(means.at(references[j]));
      }
      sum += kendall_tau(a, b);
    }
  return pairs ? sum / pairs : 1;
}

void find_leaks(const RowTable& rows, const SummaryOptions& o, Summary& s) {
  for (const auto& reference : o.references) {
    int64_t leaking = 0;
    for (const auto& image : s.images)
      leaking += row_of(rows, image, o.methods[0], o.explained[0]).replaced.at(reference) > kLeak;
    s.leaks[reference] =
        s.images.empty() ? 0 : static_cast<double>(leaking) / static_cast<double>(s.images.size());
  }
}

void warn(Summary& s) {
  constexpr size_t kNamed = 20;
  for (const auto& [reason, count] : s.left_out)
    s.warnings.push_back(fmt::format("{} of {} images left out for all methods: {}", count, s.asked, reason));
  for (size_t i = 0; i < std::min(kNamed, s.failures.size()); ++i)
    s.warnings.push_back("failed: " + text_from_failure(s.failures[i]));
  if (s.failures.size() > kNamed)
    s.warnings.push_back(
        fmt::format("failed: {} more, all of them in results.json", s.failures.size() - kNamed));
  for (const auto& [reference, share] : s.leaks)
    if (share > 0)
      s.warnings.push_back(fmt::format("{:.1f} % of the {} references keep the class above {}", 100 * share,
                                       reference, kLeak));
  for (const auto& row : s.rows)
    if (row.constant > 0)
      s.warnings.push_back(
          fmt::format("{} ({}): constant maps: {} of {}", row.method, row.explained, row.constant, s.asked));
  for (const auto& row : s.rows)
    if (row.tie_rate > 0.1)
      s.warnings.push_back(fmt::format("{} ({}): {:.0f} % of the pixels share their score with another",
                                       row.method, row.explained, 100 * row.tie_rate));
  for (const auto& metric : s.metrics)
    for (const auto& explained : s.explained)
      if (const auto measured = s.row(s.methods[0], explained).metrics.at(metric.name).images;
          measured < std::ssize(s.images))
        s.warnings.push_back(fmt::format("{} ({}): measured on {} of {} images", metric.name, explained,
                                         measured, s.images.size()));
  for (const auto& [explained, metrics] : s.agreement)
    for (const auto& [metric, tau] : metrics)
      if (tau < 1)
        s.warnings.push_back(fmt::format(
            "{} ({}): the order of the methods is not stable over the references, Kendall tau {:.2f}", metric,
            explained, tau));
  if (!s.images.empty() && s.images.size() < 30)
    s.warnings.push_back(fmt::format("only {} images: intervals of so few are too narrow", s.images.size()));
}

}  // namespace

std::string text_from_failure(const Failure& f) {
  return f.method.empty() ? fmt::format("{}: {}", f.image, f.reason)
                          : fmt::format("{}: {} ({} class): {}", f.image, f.method, f.explained, f.reason);
}

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  int pairs = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = i + 1; j < a.size(); ++j, ++pairs) {
      const double product = (a[i] - a[j]) * (b[i] - b[j]);
      sum += product > 0 ? 1 : product < 0 ? -1 : 0;
    }
  return pairs ? sum / pairs : 1;
}

const MethodSummary& Summary::row(const std::string& method, const std::string& wanted) const {
  for (const auto& row : rows)
    if (row.method == method && row.explained == wanted) return row;
  throw input_error("no row of method {} for the {} class", method, wanted);
}

Summary summarize(const RowTable& rows, const SummaryOptions& o) {
  Summary s;
  s.methods = o.methods, s.explained = o.explained, s.references = o.references, s.metrics = o.metrics;
  s.asked = static_cast<int64_t>(o.images.size());
  find_common(rows, o, s);
  if (s.images.empty())
    throw work_error(
        "none of the {} images could be explained by every method{}", s.asked,
        s.failures.empty() ? reasons_text(s.left_out) : "; the first: " + text_from_failure(s.failures[0]));
  for (const auto& explained : o.explained)
    for (size_t m = 0; m < o.methods.size(); ++m)
      s.rows.push_back(method_summary(rows, o, s.images, m, explained));
  for (const auto& explained : o.explained) {
    std::vector<MethodSummary*> same_class;
    for (auto& row : s.rows)
      if (row.explained == explained) same_class.push_back(&row);
    for (const auto& metric : o.metrics) {
      add_metric(metric, rows, o, s.images, same_class);
      compare(same_class, metric, o.seed);
      if (same_class.size() > 1 && !same_class[0]->metrics.at(metric.name).per_reference.empty())
        s.agreement[explained][metric.name] = agreement(same_class, metric.name, o.references);
    }
  }
  find_leaks(rows, o, s);
  warn(s);
  return s;
}

}  // namespace aha
