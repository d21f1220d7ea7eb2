// model-gap: how much better a map explains its own target than the map that the same method makes for
// another one. Ins-Del of both, measured on the target:
//
//   mean over references of (insertion - deletion)(map) - (insertion - deletion)(map of the other target)
//
// The other one is the same network with all weights random, or a trained one (foreign=SPEC) with the same
// classes and input size. 0 = what the map shows is evidence that any network would do for. A foreign target
// leaves the evidence that both share, so that its gap is the smaller one. Cost: one map, and two sweeps
// (sweep.h) of ten points for each reference.
#include "aha/base/error.h"
#include "aha/metrics/metric_records.h"
#include "aha/networks/catalog.h"
#include "aha/networks/randomized.h"
#include "aha/ranking/hard_order.h"

namespace aha {
namespace {

class ModelGap : public Metric {
 public:
  Fields fields() override {
    return Fields().add("foreign", foreign_,
                        "a classifier with the same classes and input size; default: the target with random "
                        "weights");
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    std::vector<MetricValues> out(B);
    if (!make_other(call)) {
      for (auto& one : out) one.missing = "the target's weights cannot be randomized";
      return [out] { return out; };
    }
    const Tensor maps =
        call.explain(other_.get(), call.images.pixels, call.images.classes.to(call.images.pixels.device()),
                     call.images.streams);
    std::vector<std::map<std::string, std::pair<Curves, Curves>>> asked(B);  // by reference: own, other
    for (int64_t b = 0; b < B; ++b) {
      if (!torch::isfinite(maps[b]).all().item<bool>()) {
        out[b].missing = "no map for " + other_->info().name;
        continue;
      }
      for (const auto& [name, reference] : call.images.references)
        asked[b][name] = {ask(call, b, call.maps[b], name), ask(call, b, maps[b], name)};
    }
    return [out, asked]() mutable {
      for (size_t b = 0; b < out.size(); ++b)
        for (const auto& [name, curves] : asked[b])
          out[b].values["model-gap@" + name] = ins_del(curves.first) - ins_del(curves.second);
      return out;
    };
  }

 private:
  bool make_other(const MetricCall& call) {
    if (other_) return true;
    if (foreign_.empty()) {
      const int groups = weight_groups(call.target);
      if (groups > 0) other_ = randomized(call.target, groups, call.context.seed, call.context);
      return other_ != nullptr;
    }
    auto loaded = load_classifier(foreign_, {}, call.context);
    const auto &mine = call.target.info(), &info = loaded->info();
    if (info.classes != mine.classes || info.input.size != mine.input.size)
      throw input_error("model-gap: expected a foreign target of {} classes and {} pixels, found {} and {}",
                        mine.classes, mine.input.size, info.classes, info.input.size);
    other_ = std::move(loaded);
    return true;
  }

  using Curves = std::shared_ptr<const std::vector<SweepCurves>>;
  static Curves ask(const MetricCall& call, int64_t b, const Tensor& map, const std::string& reference) {
    const auto& images = call.images;
    SweepOptions options;
    options.score = call.score;
    return ask_sweep(call.questions,
                     {images.pixels[b],
                      images.references.at(reference)[b],
                      hard_order(map.unsqueeze(0)).order[0],
                      images.clean[b],
                      images.replaced.at(reference)[b],
                      {images.classes[b].item<int64_t>()}},
                     options);
  }

  static double ins_del(const Curves& curves) {
    const SweepCurves& c = curves->at(0);
    return insertion_area(c.bottom, AreaRule::kAuc10) - deletion_area(c.top, AreaRule::kAuc10);
  }

  std::string foreign_;
  std::unique_ptr<Classifier> other_;
};

}  // namespace

MetricRecord model_gap_metric() {
  return {.name = "model-gap",
          .summary = "ins-del of the map minus that of the map the method makes for another target",
          .paper = "",
          .need = MetricNeed::kExplain,
          .higher_is_better = true,
          .make = [] { return std::unique_ptr<Metric>(new ModelGap); },
          .note =
              "0 for maps that never look at the target, as those of an explainer with an encoder of its "
              "own at T = 0."};
}

}  // namespace aha
