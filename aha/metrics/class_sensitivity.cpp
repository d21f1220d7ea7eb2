// class-sensitivity: how alike the maps of two classes are, by rank correlation. 1 = the map does not depend
// on the class; lower is more specific.
//
// The other class is the second most probable one (what is confused with the explained class), or the least
// probable one. Cost: one map.
#include <limits>

#include "aha/base/error.h"
#include "aha/metrics/map_similarity.h"
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

class ClassSensitivity : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("other", other_, "the class it is compared with: the most or the least probable of the others")
        .choices({"second", "least"});
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    std::vector<MetricValues> out(B);
    Tensor logits = call.images.clean.clone();  // (B, C)
    if (logits.size(1) < 2)
      throw input_error("class-sensitivity: expected a target with two classes or more, found {}",
                        logits.size(1));
    const double never = other_ == "second" ? -std::numeric_limits<double>::infinity()
                                            : std::numeric_limits<double>::infinity();
    logits.scatter_(1, call.images.classes.cpu().unsqueeze(1), never);
    const Tensor others = other_ == "second" ? logits.argmax(1) : logits.argmin(1);
    const Tensor maps = call.explain(nullptr, call.images.pixels, others.to(call.images.pixels.device()),
                                     call.images.streams);
    for (int64_t b = 0; b < B; ++b) {
      if (torch::isfinite(maps[b]).all().item<bool>())
        out[b].values["class-sensitivity"] = spearman(call.maps[b], maps[b]);
      else
        out[b].missing = "no map of the other class";
    }
    return [out] { return out; };
  }

 private:
  std::string other_ = "second";
};

}  // namespace

MetricRecord class_sensitivity_metric() {
  return {.name = "class-sensitivity",
          .summary = "rank correlation of the maps of the explained class and of another one",
          .paper = "",
          .need = MetricNeed::kExplain,
          .make = [] { return std::unique_ptr<Metric>(new ClassSensitivity); },
          .note = "A method that does not read the class has 1; a random map that does has 0."};
}

}  // namespace aha
