// parameter-randomization: how alike the map stays while the target's weights are drawn anew, from the head
// downwards (Adebayo et al. 2018). Spearman's correlation with the original map, mean over the stages of the
// cascade; a map that explains the target loses all likeness.
//
// randomization-unchanged: 1 where the map of the target with no weight of its own left is the same to the
// last bit. The map then never looked at the target and the test says nothing of it, whatever its value: so
// it is with edge detectors, and with an explainer that has an encoder of its own and is not refined.
//
// Stages: `stages` targets, with the head random, then ever more blocks, then everything; they are made once
// and kept. samples and noise give the smooth form (Hedstroem et al. 2024): maps are means over noisy copies
// of the image. Cost: stages * samples maps, and samples more for the original where there are several.
#include <algorithm>
#include <cmath>
#include <set>

#include "aha/metrics/map_similarity.h"
#include "aha/metrics/metric_records.h"
#include "aha/metrics/noisy_images.h"
#include "aha/networks/randomized.h"

namespace aha {
namespace {

constexpr uint64_t kRandomizationPurpose = 0x6d707274;

class ParameterRandomization : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("stages", stages_, "randomized targets, from the head alone to all weights; 0 = every block")
        .range(0, 1000)
        .add("samples", samples_, "noisy copies of the image that a map is the mean of; 1 = the image itself")
        .range(1, 10000)
        .add("noise", noise_, "standard deviation of their noise, of 0..1")
        .range(0, 1);
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    std::vector<MetricValues> out(B);
    if (!make_targets(call)) {
      for (auto& one : out) one.missing = "the target's weights cannot be randomized";
      return [out] { return out; };
    }
    const Tensor original = samples_ == 1 ? call.maps : smooth_maps(call, nullptr);
    std::vector<double> sums(B);
    Tensor last;
    for (const auto& target : targets_) {
      last = smooth_maps(call, target.get());
      for (int64_t b = 0; b < B; ++b) {
        if (torch::isfinite(last[b]).all().item<bool>())
          sums[b] += spearman(original[b], last[b]);
        else
          out[b].missing = "no map for " + target->info().name;
      }
    }
    for (int64_t b = 0; b < B; ++b) {
      if (!out[b].missing.empty()) continue;
      out[b].values["parameter-randomization"] = sums[b] / static_cast<double>(targets_.size());
      out[b].values["randomization-unchanged"] = torch::equal(last[b], original[b]) ? 1 : 0;
    }
    return [out] { return out; };
  }

 private:
  bool make_targets(const MetricCall& call) {
    if (!targets_.empty()) return true;
    const int groups = weight_groups(call.target);
    if (groups == 0) return false;
    const int stages = stages_ == 0 ? groups : std::min(stages_, groups);
    std::set<int> chosen;  // evenly spaced from 1 to all
    for (int i = 0; i < stages; ++i)
      chosen.insert(stages == 1 ? groups
                                : 1 + static_cast<int>(std::lround(double(i) * (groups - 1) / (stages - 1))));
    for (const int count : chosen)
      targets_.push_back(randomized(call.target, count, call.context.seed, call.context));
    return true;
  }

  // (B, H, W)
  Tensor smooth_maps(const MetricCall& call, Classifier* target) const {
    call.context.cancel->check();
    const auto& images = call.images;
    const Tensor classes = images.classes.to(images.pixels.device());
    if (samples_ == 1) return call.explain(target, images.pixels, classes, images.streams);
    Tensor sum = torch::zeros(call.maps.sizes());
    for (int i = 0; i < samples_; ++i)
      sum +=
          call.explain(target, with_normal_noise(images, noise_, call.context.seed, kRandomizationPurpose, i),
                       classes, images.streams);
    return sum / samples_;
  }

  int stages_ = 6, samples_ = 1;
  double noise_ = 0.1;
  std::vector<std::unique_ptr<Classifier>> targets_;
};

std::unique_ptr<Metric> make_parameter_randomization() {
  return std::make_unique<ParameterRandomization>();
}

constexpr const char* kRandomizationPaper = "Adebayo et al. 2018, Sanity checks for saliency maps";

}  // namespace

MetricRecord parameter_randomization_metric() {
  return {.name = "parameter-randomization",
          .summary = "rank correlation with the map of a target whose weights are random from the top down",
          .paper = kRandomizationPaper,
          .need = MetricNeed::kExplain,
          .make = make_parameter_randomization,
          .note =
              "Void (1 by construction) for maps that never look at the target: randomization-unchanged. "
              "A random map has 1 for the same reason."};
}

MetricRecord randomization_unchanged_metric() {
  return {.name = "randomization-unchanged",
          .summary = "share of images whose map is the same, bit for bit, when all weights are random",
          .paper = kRandomizationPaper,
          .need = MetricNeed::kExplain,
          .make = make_parameter_randomization};
}

}  // namespace aha
