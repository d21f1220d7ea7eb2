#include "aha/evaluate/summary.h"

#include <algorithm>
#include <cmath>

#include "aha/base/error.h"

namespace aha {
namespace {

// Into s.images those that every method explained; the others are counted by the first reason.
void find_common(const RowTable& table, const SummaryOptions& o, Summary& s) {
  for (const auto& image : o.images) {
    if (const auto at = table.not_chosen.find(image); at != table.not_chosen.end()) {
      ++s.left_out["not chosen: " + at->second];
    } else if (const auto at = table.unusable_images.find(image); at != table.unusable_images.end()) {
      s.failures.push_back({image, "", "", at->second});
      ++s.left_out["unreadable"];
    } else if (const auto at = table.reasons.find(image); at != table.reasons.end()) {
      if (const auto failed = table.failures.find(image); failed != table.failures.end())
        s.failures.insert(s.failures.end(), failed->second.begin(), failed->second.end());
      ++s.left_out[at->second];
    } else {
      s.images.push_back(image);
    }
  }
  if (s.images != table.images)
    throw work_error("expected rows of {} images in the order of the data set, found those of {}",
                     s.images.size(), table.images.size());
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

void add_to(SweepCurves& sum, const SweepCurves& c, double weight = 1) {
  add_to(sum.top, c.top, weight);
  add_to(sum.bottom, c.bottom, weight);
  add_to(sum.top_hits, c.top_hits, weight);
  add_to(sum.bottom_hits, c.bottom_hits, weight);
}

using Parts = std::map<std::string, double>;  // by reference, or by what a metric calls its sums

const std::vector<std::string>& references_of(const MetricRecord& metric, const SummaryOptions& o) {
  const auto& own = metric.higher_is_better ? o.insertion_references : o.deletion_references;
  return own.empty() ? o.references : own;
}

// What a map is worth by a metric that is no difference; empty where it was not measured.
Parts parts_of(const MetricRecord& metric, const Row& row, const std::vector<MetricValues>& values,
               const SummaryOptions& o) {
  Parts out;
  if (metric.need == MetricNeed::kCurves) {
    for (const auto& reference : references_of(metric, o))
      out[reference] = metric.of_curves(row.curves.at(reference), o.rule);
    return out;
  }
  for (const MetricValues& measured : values)
    for (auto at = measured.values.lower_bound(metric.name); at != measured.values.end(); ++at) {
      if (!at->first.starts_with(metric.name)) break;
      if (at->first.size() == metric.name.size())
        out[""] = at->second;
      else if (at->first[metric.name.size()] == '@')
        out[at->first.substr(metric.name.size() + 1)] = at->second;
    }
  return out;
}

double value_of(const MetricRecord& metric, const Parts& means) {
  if (metric.of_means) return metric.of_means(means);
  double sum = 0;
  for (const auto& [part, value] : means) sum += value;
  return sum / static_cast<double>(means.size());
}

// Part by part where both have the same ones; else of their means, as where insertion and deletion have
// references of their own.
Parts difference_of(const MetricRecord& metric, const Parts& less, const Parts& more) {
  Parts out = more;
  const bool same = less.size() == more.size() &&
                    std::equal(less.begin(), less.end(), more.begin(),
                               [](const auto& a, const auto& b) { return a.first == b.first; });
  if (!same)
    return {{"", value_of(metric_record(metric.parts[1]), more) -
                     value_of(metric_record(metric.parts[0]), less)}};
  for (auto& [part, value] : out) value -= less.at(part);
  return out;
}

double number_at(const std::vector<double>& column, size_t image) {
  return image < column.size() ? column[image] : std::nan("");
}

// A metric of one method; of a difference also what is subtracted.
struct MetricColumns {
  const MetricRecord& metric;
  const PartColumns *own = nullptr, *less = nullptr;

  MetricColumns(const MetricRecord& of, const MethodColumns& method) : metric(of) {
    const auto find = [&](const std::string& name) -> const PartColumns* {
      const auto at = method.metrics.find(name);
      return at == method.metrics.end() ? nullptr : &at->second;
    };
    own = find(metric.parts.empty() ? metric.name : metric.parts[1]);
    if (!metric.parts.empty()) less = find(metric.parts[0]);
  }
  bool measured(size_t image) const { return in(own, image) && (metric.parts.empty() || in(less, image)); }
  // Of an image where it was measured.
  Parts at(size_t image) const {
    return metric.parts.empty() ? parts(*own, image)
                                : difference_of(metric, parts(*less, image), parts(*own, image));
  }

 private:
  static bool in(const PartColumns* columns, size_t image) {
    return columns && std::any_of(columns->begin(), columns->end(), [&](const auto& column) {
             return !std::isnan(number_at(column.second, image));
           });
  }
  static Parts parts(const PartColumns& columns, size_t image) {
    Parts out;
    for (const auto& [part, column] : columns)
      if (const double number = number_at(column, image); !std::isnan(number)) out[part] = number;
    return out;
  }
};

// One number for each image, so that intervals and paired tests work on any metric: the value of a metric
// that is a mean, a jackknife pseudo-value n g(all) - (n - 1) g(all but this one) of any other. Sums of the
// parts with them.
std::vector<double> numbers_of(const MetricColumns& columns, const std::vector<size_t>& images, Parts& sums) {
  const MetricRecord& metric = columns.metric;
  std::vector<double> out;
  for (const size_t i : images) {
    const Parts one = columns.at(i);
    for (const auto& [part, value] : one) sums[part] += value;
    if (!metric.of_means) out.push_back(value_of(metric, one));
  }
  if (!metric.of_means) return out;
  const double n = static_cast<double>(images.size());
  const auto value_without = [&](const Parts& left_out, double count) {
    Parts means;
    for (const auto& [part, sum] : sums) {
      const auto at = left_out.find(part);
      means[part] = (sum - (at == left_out.end() ? 0 : at->second)) / count;
    }
    return metric.of_means(means);
  };
  if (images.empty()) return out;
  const double all = value_without({}, n);
  for (const size_t i : images)
    out.push_back(n > 1 ? n * all - (n - 1) * value_without(columns.at(i), n - 1) : all);
  return out;
}

MethodSummary method_summary(const RowTable& table, const SummaryOptions& o, size_t index,
                             const std::string& explained, const MethodColumns& found) {
  MethodSummary out;
  out.method = o.methods[index];
  out.explained = explained;
  if (!table.timings.empty()) out.timing = table.timings[index];
  out.unusable = found.unusable;
  out.constant = found.constant;
  const double n = static_cast<double>(table.images.size()), R = static_cast<double>(o.references.size());
  out.tie_rate = found.tie_rate / n;
  out.passes = {found.passes.forwards / n, found.passes.backwards / n};
  out.steps = found.steps / n;
  for (const auto& [reference, sum] : found.curves) {
    add_to(out.curves[reference], sum, 1 / n);
    add_to(out.mean_curves, sum, 1 / (n * R));
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

// The methods of one explained class.
struct ClassTable {
  const SummaryOptions& o;
  const std::vector<std::string>& images;
  std::vector<MethodSummary*> methods = {};
  std::vector<const MethodColumns*> columns = {};  // [method]
  std::map<std::string, Columns> drawn = {};       // by metric, [method]: resampled means
};

// The metric of every method, over the images where all of them could be measured.
void add_metric(const MetricRecord& metric, ClassTable& table) {
  const auto& methods = table.methods;
  const auto& o = table.o;
  std::vector<MetricColumns> columns;
  for (const MethodColumns* method : table.columns) columns.emplace_back(metric, *method);
  std::vector<size_t> measured;
  for (size_t i = 0; i < table.images.size(); ++i)
    if (std::all_of(columns.begin(), columns.end(),
                    [&](const MetricColumns& one) { return one.measured(i); }))
      measured.push_back(i);
  const double n = static_cast<double>(measured.size());
  Columns numbers;
  std::vector<Parts> sums(methods.size());
  for (size_t m = 0; m < methods.size(); ++m) numbers.push_back(numbers_of(columns[m], measured, sums[m]));
  const Columns& drawn = table.drawn[metric.name] = resampled_means(numbers, o.seed);
  for (size_t m = 0; m < methods.size(); ++m) {
    MetricSummary& out = methods[m]->metrics[metric.name];
    out.images = static_cast<int64_t>(measured.size());
    out.per_image.assign(table.images.size(), std::nan(""));
    for (size_t i = 0; i < measured.size(); ++i) out.per_image[measured[i]] = numbers[m][i];
    for (const auto& [part, sum] : sums[m])
      if (std::find(o.references.begin(), o.references.end(), part) != o.references.end())
        out.per_reference[part] = sum / n;
    out.value = bca_interval(numbers[m], drawn[m], o.level);
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
  const auto differences = paired_differences(own, theirs, drawn, drawn_theirs, table.o.seed, table.o.level);
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

void find_leaks(const RowTable& table, const SummaryOptions& o, Summary& s) {
  for (const auto& reference : o.references) {
    const auto at = table.leaks.find(reference);
    s.leaks[reference] = at == table.leaks.end()
                             ? 0
                             : static_cast<double>(at->second) / static_cast<double>(table.images.size());
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

void RowTable::add(const std::vector<MeasuredRow>& rows, const SummaryOptions& o) {
  columns.resize(o.explained.size() * o.methods.size());
  if (rows.size() != columns.size())
    throw work_error("expected {} rows of an image, found {}", columns.size(), rows.size());
  const std::string& image = rows[0].row.image;
  std::string reason;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i].row;
    if (row.ok()) continue;
    ++columns[i].unusable;
    columns[i].constant += !row.failed();
    if (row.failed()) failures[image].push_back({image, row.method, row.explained, row.state});
    if (reason.empty()) reason = row.method + ": " + (row.failed() ? "failed" : row.state);
  }
  if (!reason.empty()) {
    reasons[image] = reason;
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i].row;
    MethodColumns& into = columns[i];
    into.tie_rate += row.tie_rate;
    into.passes.forwards += row.made.passes.forwards;
    into.passes.backwards += row.made.passes.backwards;
    into.steps += row.made.steps;
    for (const auto& [reference, c] : row.curves) add_to(into.curves[reference], c);
    for (const auto& metric : o.metrics) {
      if (!metric.parts.empty()) continue;
      for (const auto& [part, number] : parts_of(metric, row, rows[i].values, o)) {
        auto& column = into.metrics[metric.name][part];
        column.resize(images.size(), std::nan(""));
        column.push_back(number);
      }
    }
  }
  for (const auto& [reference, probability] : rows[0].row.replaced) leaks[reference] += probability > kLeak;
  images.push_back(image);
}

Summary summarize(const RowTable& table, const SummaryOptions& o) {
  Summary s;
  s.methods = o.methods, s.explained = o.explained, s.references = o.references, s.metrics = o.metrics;
  s.deletion_references = o.deletion_references, s.insertion_references = o.insertion_references;
  s.training_seconds = o.training_seconds;
  s.asked = static_cast<int64_t>(o.images.size());
  find_common(table, o, s);
  if (s.images.empty() && std::ssize(table.not_chosen) == s.asked)
    throw work_error("the protocol chooses none of the {} images{}", s.asked, reasons_text(s.left_out));
  if (s.images.empty())
    throw work_error(
        "none of the {} images could be explained by every method{}", s.asked,
        s.failures.empty() ? reasons_text(s.left_out) : "; the first: " + text_from_failure(s.failures[0]));
  for (size_t i = 0; i < table.columns.size(); ++i)
    s.rows.push_back(
        method_summary(table, o, i % o.methods.size(), o.explained[i / o.methods.size()], table.columns[i]));
  for (const auto& explained : o.explained) {
    ClassTable of_class{o, s.images};
    auto& same_class = of_class.methods;
    for (size_t i = 0; i < s.rows.size(); ++i)
      if (s.rows[i].explained == explained) {
        same_class.push_back(&s.rows[i]);
        of_class.columns.push_back(&table.columns[i]);
      }
    for (const auto& metric : o.metrics) {
      add_metric(metric, of_class);
      compare(of_class, metric);
      mark_optimized(same_class, metric, o);
      s.bounds[explained][metric.name] = add_places(same_class, metric);
      if (same_class.size() > 1 && same_class[0]->metrics.at(metric.name).per_reference.size() > 1)
        s.agreement[explained][metric.name] = agreement(same_class, metric.name, o.references);
    }
    const auto ranking = ranking_metrics(s, same_class);
    add_ranks(ranking, of_class);
    if (same_class.size() > 1) add_agreement(ranking, same_class, s.between_metrics[explained]);
  }
  correct_p_values(s);
  add_break_even(s);
  find_leaks(table, o, s);
  warn(s);
  return s;
}

}  // namespace aha
