// From rows to statements: means with intervals, differences with p values, and what to be careful about.
//
// Only images that every method could explain count, so that all means are over the same set; which were
// left out, and why, is part of the result. Each metric of an image is the mean over the references.
// Differences are paired by image, and their p values corrected for all comparisons of the table.
//
// Controls are floors and searches on the image are ceilings: both have rows, but no method is compared with
// a ceiling or ranked among them. A method's place says how far it is on the way from the best floor to the
// best ceiling.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "aha/base/stats.h"
#include "aha/evaluate/row_store.h"
#include "aha/metrics/catalog.h"

namespace aha {

struct MetricSummary {
  Interval value;                               // bootstrap over images, 95 % unless told
  std::map<std::string, double> per_reference;  // means; empty where references play no part
  // In the order of the common images; NaN where a method of the table could not be measured. Of a metric of
  // the whole data set (MetricRecord::of_means): jackknife pseudo-values.
  std::vector<double> per_image;
  int64_t images = 0;  // measured
  // Against the best other method of the same explained class; empty where there is none.
  std::string rival;
  PairedDifference difference;
  double corrected_p = 1;  // Holm over all methods, metrics and explained classes
  double detectable = 0;   // difference found with 80 % power at this number of images, two-sided 5 %
  double place = std::numeric_limits<double>::quiet_NaN();  // percent of the way from floor to ceiling
  bool optimized = false;  // whether the method's maps are searched or trained for it
};

// By what a map costs.
enum class CostGroup { kOneForward, kForwards, kBackwards, kCeiling, kFloor };
std::string title_of(CostGroup group);

struct MethodSummary {
  std::string method, explained;
  CostGroup group = CostGroup::kForwards;
  bool learned = false;
  // Mean over the metrics that are no part of another and were measured on every image; ceilings have none
  // (0).
  Interval rank;
  std::map<std::string, MetricSummary> metrics;
  std::map<std::string, SweepCurves> curves;  // means over images, by reference
  SweepCurves mean_curves;                    // and over the references
  double tie_rate = 0;
  int64_t unusable = 0;  // constant or failed maps
  int64_t constant = 0;  // of them
  Timing timing;
  Passes passes;     // mean over images
  double steps = 0;  // of refinement, mean over images
};

// An image that could not be read, or a map that could not be made.
struct Failure {
  std::string image, method, explained,
      reason;  // method and explained: empty where the image itself is meant
};

std::string text_from_failure(const Failure& failure);

struct Summary {
  std::vector<std::string> methods, explained, references, images;  // images: the common ones
  std::vector<std::string> deletion_references, insertion_references;
  std::vector<MetricRecord> metrics;
  std::vector<MethodSummary> rows;          // explained classes outer, methods inner, in the order asked for
  int64_t asked = 0;                        // images
  std::map<std::string, int64_t> left_out;  // by reason, "gradcam: constant", "unreadable"
  std::vector<Failure> failures;            // in the order of the images
  std::map<std::string, std::map<std::string, double>>
      agreement;  // [explained][metric]: mean Kendall tau of the methods' order between references
  // [explained]: metrics that rank the methods, and the tau between each two of them (1 on the diagonal)
  struct MetricAgreement {
    std::vector<std::string> metrics;
    std::vector<std::vector<double>> tau;
  };
  std::map<std::string, MetricAgreement> between_metrics;
  // [explained][metric]: the best floor and the best ceiling; empty where there is none.
  struct Bounds {
    std::string floor, ceiling;
  };
  std::map<std::string, std::map<std::string, Bounds>> bounds;
  // How many maps until a learned method has paid off its training; infinity = never.
  struct BreakEven {
    std::string method, slower;
    double maps = 0;
  };
  double training_seconds = 0;  // 0 = not known
  std::vector<BreakEven> break_even;
  std::map<std::string, double>
      leaks;  // by reference: share of images whose replacement keeps the class above kLeak
  std::vector<std::string> warnings;

  const MethodSummary& row(const std::string& method, const std::string& explained) const;
};

constexpr double kLeak = 0.05;

// What is known of a method before it makes a map.
struct MethodFacts {
  MethodKind kind = MethodKind::kAny;
  bool learned = false;
  std::vector<std::string> optimizes = {};  // metrics
};

struct SummaryOptions {
  std::vector<std::string> methods, explained, references, images;
  std::vector<std::string> deletion_references, insertion_references;  // empty = all
  std::vector<MethodFacts> facts;  // one for each method; empty = nothing is known
  double training_seconds = 0;     // of learned methods
  std::vector<MetricRecord> metrics;
  AreaRule rule = AreaRule::kAuc10;
  double level = 0.95;  // of the intervals of values and differences
  uint64_t seed = 0;
};

// One metric that is no difference, by part (a reference, or what the metric calls its sums): a number for
// each image that counts, NaN where it was not measured.
using PartColumns = std::map<std::string, std::vector<double>>;

// What the rows of one method and explained class add up to.
struct MethodColumns {
  int64_t unusable = 0, constant = 0;  // maps
  // Sums over the images that count.
  double tie_rate = 0, steps = 0;
  Passes passes;
  std::map<std::string, SweepCurves> curves;   // by reference
  std::map<std::string, PartColumns> metrics;  // by name
};

// What an evaluation found, image by image: nothing but numbers is kept of the rows.
struct RowTable {
  struct MeasuredRow {
    Row row;
    std::vector<MetricValues> values = {};
  };
  // All rows of one image, explained classes outer, methods inner, both in the order of the options.
  void add(const std::vector<MeasuredRow>& rows, const SummaryOptions& options);

  std::vector<Timing> timings = {};                         // one for each method; empty = none was timed
  std::map<std::string, std::string> unusable_images = {};  // image and reason: these have no rows
  std::map<std::string, std::string> not_chosen = {};       // by the protocol: neither have these

  // What add() makes of the rows.
  std::vector<std::string> images = {};             // that every method explained: these count
  std::map<std::string, std::string> reasons = {};  // of the others: the first one
  std::map<std::string, std::vector<Failure>> failures = {};
  std::vector<MethodColumns> columns = {};    // in the order of the rows
  std::map<std::string, int64_t> leaks = {};  // by reference: images that keep their class
};

// Every image that is neither unusable nor left out by the protocol must have been added, in the options'
// order.
Summary summarize(const RowTable& table, const SummaryOptions& options);

}  // namespace aha
