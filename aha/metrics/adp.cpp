// adp, pic: average drop in percent and percentage of images whose confidence rises, when the image keeps
// only what the map shows (Grad-CAM++'s metrics).
//
// The map, scaled to 0..1, blends the image with the reference: E = A I + (1 - A) I_0. With Y the probability
// of the class on the image and O on E: adp = 100 max(0, Y - O) / Y, pic = 100 [O > Y]. The paper's tables
// list both for each reference, so the reference takes part. Cost: one forward pass for each reference.
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

constexpr double kLeastProbability = 1e-12;

class AverageDrop : public Metric {
 public:
  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    auto out = std::make_shared<std::vector<MetricValues>>(B);
    for (int64_t b = 0; b < B; ++b) {
      const Tensor keep = scaled_to_unit(call.maps[b]);
      const int64_t wanted = call.images.classes[b].item<int64_t>();
      const double clean = std::max(kLeastProbability, score_of(values_of(call.images.clean[b]), wanted));
      for (const auto& [name, reference] : call.images.references)
        call.questions.ask(blended(call.images.pixels[b].contiguous(), reference[b].contiguous(), keep),
                           [=, reference_name = name](std::span<const double> logits) {
                             const double shown = score_of(logits, wanted);
                             auto& values = (*out)[b].values;
                             values["adp@" + reference_name] = 100 * std::max(0.0, clean - shown) / clean;
                             values["pic@" + reference_name] = shown > clean ? 100 : 0;
                           });
    }
    return [out] { return *out; };
  }
};

std::unique_ptr<Metric> make_average_drop() {
  return std::make_unique<AverageDrop>();
}

constexpr const char* kAverageDropPaper = "Chattopadhay et al. 2018, Grad-CAM++";

}  // namespace

MetricRecord adp_metric() {
  return {.name = "adp",
          .summary = "percent of the probability that is lost when only what the map shows is kept",
          .paper = kAverageDropPaper,
          .need = MetricNeed::kMap,
          .make = make_average_drop,
          .note = "Depends on the map's values, not only on their order; a map of ones has the best value."};
}

MetricRecord pic_metric() {
  return {.name = "pic",
          .summary = "percent of images whose probability rises when only what the map shows is kept",
          .paper = kAverageDropPaper,
          .need = MetricNeed::kMap,
          .higher_is_better = true,
          .make = make_average_drop};
}

}  // namespace aha
