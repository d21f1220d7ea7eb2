// sensitivity-max: how far a map moves when its image moves a little, at worst.
//
//   max over samples of |map(x + d) - map(x)| / |map(x)|,   d uniform in [-radius, radius]^n
//
// Yeh et al. 2019. The class stays the one that is explained, x + d stays within [0, 1]. Cost: `samples`
// maps.
#include <algorithm>
#include <cmath>

#include "aha/metrics/metric_records.h"
#include "aha/metrics/noisy_images.h"

namespace aha {
namespace {

constexpr uint64_t kSensitivityPurpose = 0x73656e73;

class SensitivityMax : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("samples", samples_, "neighbors of the image that are explained")
        .range(1, 10000)
        .add("radius", radius_, "largest change of a pixel's value, of 0..1")
        .range(0, 1);
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    std::vector<MetricValues> out(B);
    std::vector<double> worst(B), length(B);
    const Tensor maps = call.maps.to(torch::kFloat64);
    for (int64_t b = 0; b < B; ++b) length[b] = maps[b].norm().item<double>();
    for (int i = 0; i < samples_; ++i) {
      call.context.cancel->check();
      const Tensor near = with_uniform_noise(call.images, radius_, call.context.seed, kSensitivityPurpose, i);
      const Tensor moved =
          call.explain(nullptr, near, call.images.classes.to(near.device()), call.images.streams)
              .to(torch::kFloat64);
      for (int64_t b = 0; b < B; ++b) {
        const double distance = (moved[b] - maps[b]).norm().item<double>();
        if (std::isfinite(distance))
          worst[b] = std::max(worst[b], distance / length[b]);
        else
          out[b].missing = "no map for a neighbor of the image";
      }
    }
    for (int64_t b = 0; b < B; ++b) {
      if (length[b] == 0) out[b].missing = "the map is 0";
      if (out[b].missing.empty()) out[b].values["sensitivity-max"] = worst[b];
    }
    return [out] { return out; };
  }

 private:
  int samples_ = 10;
  double radius_ = 0.02;
};

}  // namespace

MetricRecord sensitivity_max_metric() {
  return {.name = "sensitivity-max",
          .summary = "how far the map moves, at worst, when the image moves a little; 1 = by its own length",
          .paper = "Yeh et al. 2019, On the (in)fidelity and sensitivity of explanations",
          .need = MetricNeed::kExplain,
          .make = [] { return std::unique_ptr<Metric>(new SensitivityMax); },
          .note = "A map that does not look at the image has the best value, 0."};
}

}  // namespace aha
