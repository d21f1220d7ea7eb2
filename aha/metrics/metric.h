// A metric: what a map is worth, as named numbers of one image.
//
// Three kinds of need. `curves`: the number follows from the sweep of the map (sweep.h), which is made once
// for all such metrics and stored; the record's of_curves computes it. `map`, `mask`, `box`: a Metric looks
// at the map itself, with an object's mask or box where it says so, and may ask the target about perturbed
// images. `explain`: a Metric that explains other images, classes or targets again.
//
// Values of an image are called NAME or NAME@PART: the part is a reference ("adp@blur"), or a sum that only
// means something over the whole data set ("seg-miou@union"). docs/adding_a_metric.md walks through one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/metrics/score_queue.h"
#include "aha/metrics/sweep.h"
#include "aha/networks/input_annotation.h"

namespace aha {

// Images measured together, B of them.
struct MetricImages {
  Tensor pixels;   // (B, 3, H, W) in [0, 1]
  Tensor classes;  // (B) int64
  std::vector<uint64_t> streams;
  Tensor clean;                                        // (B, C) logits, double
  std::map<std::string, Tensor> references, replaced;  // by reference: (B, 3, H, W), (B, C) logits, double
  std::vector<InputAnnotation> annotations;            // B

  int64_t size() const { return pixels.size(0); }
};

// pixels (B, 3, H, W), classes (B) -> maps (B, H, W) of the method under test. A null target is the one that
// is explained; another one gets the same method with the same options.
using ExplainAgain = std::function<Tensor(Classifier* target, const Tensor& pixels, const Tensor& classes,
                                          const std::vector<uint64_t>& streams)>;

struct MetricCall {
  Classifier& target;
  const MetricImages& images;
  const Tensor& maps;     // (B, H, W) float32, finite
  ScoreQueue& questions;  // to the target; answered when it is flushed
  ScoreKind score = ScoreKind::kProbability;
  ExplainAgain explain;  // of metrics that need it
  const Context& context;
};

// Of one image. Empty where it cannot be measured; `missing` says why ("no mask").
struct MetricValues {
  std::map<std::string, double> values;
  std::string missing = {};
};

class Metric {
 public:
  virtual ~Metric() = default;
  virtual Fields fields() { return {}; }

  // Asks what it needs to; what it returns is called once, after call.questions has been flushed, and gives
  // one result for each image. Images, maps and classes live until then, the call itself does not.
  using Pending = std::function<std::vector<MetricValues>()>;
  virtual Pending measure(const MetricCall& call) = 0;
};

enum class MetricNeed { kCurves, kMap, kMask, kBox, kExplain };

struct MetricRecord {
  std::string name, summary, paper;
  MetricNeed need = MetricNeed::kCurves;
  bool higher_is_better = false;
  // A difference: parts[1] - parts[0], which are shown beside it. It has none of the functions below.
  std::vector<std::string> parts = {};
  // Of metrics that need curves.
  double (*of_curves)(const SweepCurves&, AreaRule) = nullptr;
  // Of the others. Records with the same function are measured together, by one Metric.
  std::unique_ptr<Metric> (*make)() = nullptr;
  // From the means of its parts over all images to its value; null = the mean of the parts.
  double (*of_means)(const std::map<std::string, double>& means) = nullptr;
  std::string note = {};
};

}  // namespace aha
