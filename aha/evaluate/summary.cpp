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
    if (const auto at = table.not_chosen.find(image); at != table.not_chosen.end()) {
      ++s.left_out["not chosen: " + at->second];
      continue;
    }
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
  for (const auto& [reason, count] : left_out)
    out += fmt::format("; {}: {} image{}", reason, count, count == 1 ? "" : "s");
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

using Measured = std::vector<std::optional<Parts>>;  // of one method, one for each image

const std::vector<std::string>& references_of(const MetricRecord& metric, const SummaryOptions& o) {
  const auto& own = metric.higher_is_better ? o.insertion_references : o.deletion_references;
  return own.empty() ? o.references : own;
}

// What a map is worth by a metric that is no difference; nothing where it was not measured.
std::optional<Parts> parts_of(const MetricRecord& metric, const Row& row,
                              const std::vector<const MetricValues*>& values, const SummaryOptions& o) {
  Parts out;
  if (metric.need == MetricNeed::kCurves) {
    for (const auto& reference : references_of(metric, o))
      out[reference] = metric.of_curves(row.curves.at(reference), o.rule);
    return out;
  }
  for (const MetricValues* measured : values)
    for (auto at = measured->values.lower_bound(metric.name); at != measured->values.end(); ++at) {
      if (!at->first.starts_with(metric.name)) break;
      if (at->first.size() == metric.name.size())
        out[""] = at->second;
      else if (at->first[metric.name.size()] == '@')
        out[at->first.substr(metric.name.size() + 1)] = at->second;
    }
  return out.empty() ? std::nullopt : std::optional(out);
}

double value_of(const MetricRecord& metric, const Parts& means) {
  if (metric.of_means) return metric.of_means(means);
  double sum = 0;
  for (const auto& [part, value] : means) sum += value;
  return sum / static_cast<double>(means.size());
}

// Part by part where both have the same ones; else of their means, as where insertion and deletion have
// references of their own.
std::optional<Parts> difference_of(const MetricRecord& metric, const std::optional<Parts>& less,
                                   const std::optional<Parts>& more) {
  if (!less || !more) return std::nullopt;
  Parts out = *more;
  const bool same = less->size() == more->size() &&
                    std::equal(less->begin(), less->end(), more->begin(),
                               [](const auto& a, const auto& b) { return a.first == b.first; });
  if (!same)
    return Parts{{"", value_of(metric_record(metric.parts[1]), *more) -
                          value_of(metric_record(metric.parts[0]), *less)}};
  for (auto& [part, value] : out) value -= less->at(part);
  return out;
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
    if (!rows.unusable_images.contains(image) && !rows.not_chosen.contains(image)) {
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
  const MethodFacts facts = o.facts.empty() ? MethodFacts{} : o.facts[index];
  out.learned = facts.learned;
  out.group = facts.kind == MethodKind::kCeiling   ? CostGroup::kCeiling
              : facts.kind == MethodKind::kControl ? CostGroup::kFloor
              : out.passes.backwards > 0           ? CostGroup::kBackwards
              : out.passes.forwards < 1.5          ? CostGroup::kOneForward
                                                   : CostGroup::kForwards;
  return out;
}

// The methods of one explained class with their rows, image by image.
struct ClassTable {
  const SummaryOptions& o;
  const std::vector<std::string>& images;
  std::vector<MethodSummary*> methods = {};
  std::vector<std::vector<const Row*>> grid = {};                                 // [method][image]
  std::vector<std::vector<const std::vector<const MetricValues*>*>> values = {};  // [method][image]
  std::map<std::string, Columns> drawn = {};  // by metric, [method]: resampled means

  // [method][image]
  std::vector<Measured> of(const MetricRecord& metric) const {
    std::vector<Measured> out(methods.size()), less, more;
    if (!metric.parts.empty())
      less = of(metric_record(metric.parts[0])), more = of(metric_record(metric.parts[1]));
    for (size_t m = 0; m < methods.size(); ++m)
      for (size_t i = 0; i < images.size(); ++i)
        out[m].push_back(metric.parts.empty() ? parts_of(metric, *grid[m][i], *values[m][i], o)
                                              : difference_of(metric, less[m][i], more[m][i]));
    return out;
  }
};

// The metric of every method, over the images where all of them could be measured.
void add_metric(const MetricRecord& metric, ClassTable& table) {
  const auto all = table.of(metric);
  const auto& methods = table.methods;
  const auto& o = table.o;
  std::vector<size_t> measured;
  for (size_t i = 0; i < table.images.size(); ++i)
    if (std::all_of(all.begin(), all.end(), [&](const Measured& one) { return one[i].has_value(); }))
      measured.push_back(i);
  const double n = static_cast<double>(measured.size());
  Columns numbers;
  std::vector<Parts> sums(methods.size());
  for (size_t m = 0; m < methods.size(); ++m) {
    std::vector<Parts> parts;
    for (const size_t i : measured) {
      parts.push_back(*all[m][i]);
      for (const auto& [part, value] : parts.back()) sums[m][part] += value;
    }
    numbers.push_back(numbers_of(metric, parts));
  }
  const Columns& drawn = table.drawn[metric.name] = resampled_means(numbers, o.seed);
  for (size_t m = 0; m < methods.size(); ++m) {
    MetricSummary& out = methods[m]->metrics[metric.name];
    out.images = static_cast<int64_t>(measured.size());
    out.per_image.assign(table.images.size(), std::nan(""));
    for (size_t i = 0; i < measured.size(); ++i) out.per_image[measured[i]] = numbers[m][i];
    for (const auto& [part, sum] : sums[m])
      if (std::find(o.references.begin(), o.references.end(), part) != o.references.end())
        out.per_reference[part] = sum / n;
    out.value = bca_interval(numbers[m], drawn[m]);
    if (metric.of_means && !measured.empty()) {  // the mean of pseudo-values is only nearly the value
      Parts means;
      for (const auto& [part, sum] : sums[m]) means[part] = sum / n;
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

double goodness(const MethodSummary& row, const MetricRecord& metric) {
  return (metric.higher_is_better ? 1 : -1) * row.metrics.at(metric.name).value.mean;
}

// The best of those that `counts`; null where there is none.
template <class Counts>
const MethodSummary* best_of(const std::vector<MethodSummary*>& rows, const MetricRecord& metric,
                             const Counts& counts) {
  const MethodSummary* best = nullptr;
  for (const MethodSummary* row : rows)
    if (counts(*row) && (!best || goodness(*row, metric) > goodness(*best, metric))) best = row;
  return best;
}

// Each method against the best other one that is no ceiling, by the metric's own direction.
void compare(const ClassTable& table, const MetricRecord& metric) {
  const auto& rows = table.methods;
  if (rows.size() < 2 || rows[0]->metrics.at(metric.name).images == 0) return;
  const Columns& drawn = table.drawn.at(metric.name);
  Columns own, theirs, drawn_theirs;
  for (MethodSummary* row : rows) {
    const auto other = [&](const MethodSummary& one) { return &one != row; };
    const MethodSummary* rival = best_of(rows, metric, [&](const MethodSummary& one) {
      return other(one) && one.group != CostGroup::kCeiling;
    });
    if (!rival) rival = best_of(rows, metric, other);
    row->metrics.at(metric.name).rival = rival->method;
    own.push_back(measured_only(row->metrics.at(metric.name).per_image));
    theirs.push_back(measured_only(rival->metrics.at(metric.name).per_image));
    drawn_theirs.push_back(drawn[std::find(rows.begin(), rows.end(), rival) - rows.begin()]);
  }
  const auto differences = paired_differences(own, theirs, drawn, drawn_theirs, table.o.seed);
  for (size_t m = 0; m < rows.size(); ++m) {
    MetricSummary& mine = rows[m]->metrics.at(metric.name);
    mine.difference = differences[m];
    if (!metric.higher_is_better) mine.difference.win_rate = 1 - mine.difference.win_rate;
    for (size_t i = 0; i < own[m].size(); ++i) own[m][i] -= theirs[m][i];
    mine.detectable = detectable_difference(standard_deviation(own[m]), own[m].size());
  }
}

// Over everything that compare() compared.
void correct_p_values(Summary& s) {
  std::vector<MetricSummary*> compared;
  std::vector<double> p;
  for (auto& row : s.rows)
    for (auto& [name, metric] : row.metrics)
      if (!metric.rival.empty()) {
        compared.push_back(&metric);
        p.push_back(metric.difference.p_value);
      }
  const auto corrected = holm(p);
  for (size_t i = 0; i < compared.size(); ++i) compared[i]->corrected_p = corrected[i];
}

// Metrics with figures that are no part of another one of the table.
std::vector<MetricRecord> ranking_metrics(const Summary& s, const std::vector<MethodSummary*>& rows) {
  std::vector<MetricRecord> out;
  for (const auto& metric : s.metrics)
    if (rows[0]->metrics.at(metric.name).images > 0 &&
        std::none_of(s.metrics.begin(), s.metrics.end(), [&](const MetricRecord& other) {
          return std::find(other.parts.begin(), other.parts.end(), metric.name) != other.parts.end();
        }))
      out.push_back(metric);
  return out;
}

// Mean rank of each method, of these and of resampled images, over metrics that were all measured on the same
// number of them: the resamples are then the same.
void add_ranks(const std::vector<MetricRecord>& all_metrics, const ClassTable& table) {
  std::vector<size_t> ranked;
  for (size_t m = 0; m < table.methods.size(); ++m)
    if (table.methods[m]->group != CostGroup::kCeiling) ranked.push_back(m);
  std::vector<MetricRecord> metrics;
  for (const auto& metric : all_metrics)
    if (table.methods[0]->metrics.at(metric.name).images == std::ssize(table.images))
      metrics.push_back(metric);
  if (ranked.size() < 2 || metrics.empty()) return;
  const size_t M = ranked.size();
  const auto mean_ranks = [&](const auto& value) {  // value(metric, method)
    std::vector<double> sum(M), values(M);
    for (const auto& metric : metrics) {
      for (size_t m = 0; m < M; ++m)
        values[m] = (metric.higher_is_better ? 1 : -1) * value(metric.name, ranked[m]);
      const auto ranks = ranks_from_best(values);
      for (size_t m = 0; m < M; ++m) sum[m] += ranks[m] / static_cast<double>(metrics.size());
    }
    return sum;
  };
  Columns drawn(M);
  for (int r = 0; r < kResamples; ++r) {
    const auto ranks =
        mean_ranks([&](const std::string& metric, size_t m) { return table.drawn.at(metric)[m][r]; });
    for (size_t m = 0; m < M; ++m) drawn[m].push_back(ranks[m]);
  }
  const auto ranks = mean_ranks(
      [&](const std::string& metric, size_t m) { return table.methods[m]->metrics.at(metric).value.mean; });
  for (size_t m = 0; m < M; ++m) {
    std::sort(drawn[m].begin(), drawn[m].end());
    const auto at = [&](double q) {
      return drawn[m][static_cast<size_t>(std::lround(q * (kResamples - 1)))];
    };
    table.methods[ranked[m]]->rank = {ranks[m], at(0.025), at(0.975)};
  }
}

void add_agreement(const std::vector<MetricRecord>& metrics, const std::vector<MethodSummary*>& rows,
                   Summary::MetricAgreement& out) {
  std::vector<std::vector<double>> values;
  for (const auto& metric : metrics) {
    out.metrics.push_back(metric.name);
    auto& column = values.emplace_back();
    for (const MethodSummary* row : rows)
      if (row->group != CostGroup::kCeiling) column.push_back(goodness(*row, metric));
  }
  for (const auto& a : values) {
    auto& line = out.tau.emplace_back();
    for (const auto& b : values) line.push_back(kendall_tau(a, b));
  }
}

// Where each method stands between the best floor and the best ceiling.
Summary::Bounds add_places(const std::vector<MethodSummary*>& rows, const MetricRecord& metric) {
  const auto in = [](CostGroup group) {
    return [group](const MethodSummary& row) { return row.group == group; };
  };
  const MethodSummary *floor = best_of(rows, metric, in(CostGroup::kFloor)),
                      *ceiling = best_of(rows, metric, in(CostGroup::kCeiling));
  if (floor && ceiling && goodness(*ceiling, metric) > goodness(*floor, metric))
    for (MethodSummary* row : rows)
      row->metrics.at(metric.name).place = 100 * (goodness(*row, metric) - goodness(*floor, metric)) /
                                           (goodness(*ceiling, metric) - goodness(*floor, metric));
  return {floor ? floor->method : "", ceiling ? ceiling->method : ""};
}

// A difference is optimized where a part of it is.
void mark_optimized(const std::vector<MethodSummary*>& rows, const MetricRecord& metric,
                    const SummaryOptions& o) {
  std::vector<std::string> names = metric.parts;
  names.push_back(metric.name);
  for (size_t m = 0; m < o.facts.size(); ++m)
    for (const auto& name : names)
      for (const auto& optimized : o.facts[m].optimizes)
        if (name == optimized) rows[m]->metrics.at(metric.name).optimized = true;
}

void add_break_even(Summary& s) {
  if (s.training_seconds <= 0) return;
  const auto timed = [&](const MethodSummary& row) {
    return row.explained == s.explained[0] && row.timing.runs > 0;
  };
  for (const auto& own : s.rows)
    for (const auto& other : s.rows)
      if (own.learned && !other.learned && other.group != CostGroup::kFloor && timed(own) && timed(other))
        s.break_even.push_back({own.method, other.method,
                                break_even(s.training_seconds, other.timing.seconds, own.timing.seconds)});
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
      s.warnings.push_back(fmt::format(
          "on {:.1f} % of the images the class keeps more than {} when every pixel is replaced ({})",
          100 * share, kLeak, reference));
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
            "{} ({}): ranking not stable: the references order the methods differently, Kendall tau {:.2f}",
            metric, explained, tau));
  for (const auto& [explained, agreement] : s.between_metrics) {
    double least = 1;
    std::string pair;
    for (size_t a = 0; a < agreement.metrics.size(); ++a)
      for (size_t b = a + 1; b < agreement.metrics.size(); ++b)
        if (agreement.tau[a][b] < least) {
          least = agreement.tau[a][b];
          pair = agreement.metrics[a] + " and " + agreement.metrics[b];
        }
    if (least < 1)
      s.warnings.push_back(
          fmt::format("ranking not stable ({}): the metrics order the methods differently, most so {}, "
                      "Kendall tau {:.2f}",
                      explained, pair, least));
  }
  if (!s.images.empty() && s.images.size() < 30)
    s.warnings.push_back(fmt::format("only {} images: intervals of so few are too narrow", s.images.size()));
}

}  // namespace

std::string text_from_failure(const Failure& f) {
  return f.method.empty() ? fmt::format("{}: {}", f.image, f.reason)
                          : fmt::format("{}: {} ({} class): {}", f.image, f.method, f.explained, f.reason);
}

std::string title_of(CostGroup group) {
  switch (group) {
    case CostGroup::kOneForward:
      return "one forward pass or none";
    case CostGroup::kForwards:
      return "several forward passes";
    case CostGroup::kBackwards:
      return "with backward passes";
    case CostGroup::kCeiling:
      return "ceilings: searched on each image";
    case CostGroup::kFloor:
      return "floors: controls";
  }
  return "";
}

const MethodSummary& Summary::row(const std::string& method, const std::string& wanted) const {
  for (const auto& row : rows)
    if (row.method == method && row.explained == wanted) return row;
  throw input_error("no row of method {} for the {} class", method, wanted);
}

Summary summarize(const RowTable& rows, const SummaryOptions& o) {
  Summary s;
  s.methods = o.methods, s.explained = o.explained, s.references = o.references, s.metrics = o.metrics;
  s.deletion_references = o.deletion_references, s.insertion_references = o.insertion_references;
  s.training_seconds = o.training_seconds;
  s.asked = static_cast<int64_t>(o.images.size());
  find_common(rows, o, s);
  if (s.images.empty() && std::ssize(rows.not_chosen) == s.asked)
    throw work_error("the protocol chooses none of the {} images{}", s.asked, reasons_text(s.left_out));
  if (s.images.empty())
    throw work_error(
        "none of the {} images could be explained by every method{}", s.asked,
        s.failures.empty() ? reasons_text(s.left_out) : "; the first: " + text_from_failure(s.failures[0]));
  for (const auto& explained : o.explained)
    for (size_t m = 0; m < o.methods.size(); ++m)
      s.rows.push_back(method_summary(rows, o, s.images, m, explained));
  for (const auto& explained : o.explained) {
    ClassTable table{o, s.images};
    auto& same_class = table.methods;
    for (auto& row : s.rows)
      if (row.explained == explained) {
        same_class.push_back(&row);
        auto& line = table.grid.emplace_back();
        auto& values = table.values.emplace_back();
        for (const auto& image : s.images) {
          line.push_back(&row_of(rows, image, row.method, explained));
          values.push_back(&values_of(rows, image, row.method, explained));
        }
      }
    for (const auto& metric : o.metrics) {
      add_metric(metric, table);
      compare(table, metric);
      mark_optimized(same_class, metric, o);
      s.bounds[explained][metric.name] = add_places(same_class, metric);
      if (same_class.size() > 1 && same_class[0]->metrics.at(metric.name).per_reference.size() > 1)
        s.agreement[explained][metric.name] = agreement(same_class, metric.name, o.references);
    }
    const auto ranking = ranking_metrics(s, same_class);
    add_ranks(ranking, table);
    if (same_class.size() > 1) add_agreement(ranking, same_class, s.between_metrics[explained]);
  }
  correct_p_values(s);
  add_break_even(s);
  find_leaks(rows, o, s);
  warn(s);
  return s;
}

}  // namespace aha
