// infidelity: how badly the map predicts what happens to the score when part of the image changes.
//
//   mean over samples of (beta a - (f(x) - f(x - I)))^2
//
// Yeh et al. 2019. By default I removes a square at a random place: x - I shows the reference there, and a is
// the sum of the map inside the square. The map counts as what each pixel contributes, so it is not
// multiplied by the pixels' change once more. perturb=noise: I is Gaussian noise, the same in all channels,
// and a the sum of noise times map, as for gradients. Maps have no common scale: beta is the factor that fits
// this map best, sum(a f) / sum(a^2) over the samples (normalize; Captum's option of this name). Cost:
// `samples` forward passes for each reference; noise has no reference.
#include <algorithm>
#include <cmath>

#include "aha/base/rng.h"
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

constexpr uint64_t kInfidelityPurpose = 0x696e6669;

// What the map predicts and what happens, sample by sample.
struct Predictions {
  std::vector<double> predicted, found;
};

double infidelity_of(const Predictions& p, bool normalize) {
  double aa = 0, af = 0, sum = 0;
  for (size_t i = 0; i < p.found.size(); ++i) {
    aa += p.predicted[i] * p.predicted[i];
    af += p.predicted[i] * p.found[i];
  }
  const double beta = !normalize ? 1 : aa > 0 ? af / aa : 0;
  for (size_t i = 0; i < p.found.size(); ++i) {
    const double miss = beta * p.predicted[i] - p.found[i];
    sum += miss * miss;
  }
  return sum / static_cast<double>(p.found.size());
}

class Infidelity : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("perturb", perturb_, "squares that show the reference, or noise all over the image")
        .choices({"squares", "noise"})
        .add("samples", samples_, "perturbed images, for each reference")
        .range(2, 100000)
        .add("side", side_, "side of a square, as a share of the image's")
        .range(0.001, 1)
        .add("noise", noise_, "standard deviation of the noise, of 0..1")
        .range(0, 1)
        .add("normalize", normalize_, "scale each map by the factor that fits it best");
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    auto found = std::make_shared<std::vector<std::map<std::string, Predictions>>>(B);
    for (int64_t b = 0; b < B; ++b) {
      if (perturb_ == "noise") {
        ask(call, b, {}, (*found)[b]["infidelity"], found);
      } else {
        for (const auto& [name, reference] : call.images.references)
          ask(call, b, reference[b].contiguous(), (*found)[b]["infidelity@" + name], found);
      }
    }
    return [found, normalize = normalize_] {
      std::vector<MetricValues> out(found->size());
      for (size_t b = 0; b < out.size(); ++b)
        for (const auto& [name, predictions] : (*found)[b])
          out[b].values[name] = infidelity_of(predictions, normalize);
      return out;
    };
  }

 private:
  // `owner` keeps `to` alive.
  void ask(const MetricCall& call, int64_t b, const Tensor& reference, Predictions& to,
           const std::shared_ptr<void>& owner) const {
    const Tensor pixels = call.images.pixels[b].cpu().contiguous(),
                 map = call.maps[b].cpu().to(torch::kFloat64).contiguous();
    const int64_t H = map.size(0), W = map.size(1), wanted = call.images.classes[b].item<int64_t>();
    const double clean = score_of(values_of(call.images.clean[b]), wanted, call.score);
    to.predicted.resize(samples_), to.found.resize(samples_);
    for (int i = 0; i < samples_; ++i) {
      Rng rng(call.context.seed,
              stream_id({kInfidelityPurpose, call.images.streams[b], static_cast<uint64_t>(i)}));
      ScoreQueue::Write write;
      if (!reference.defined()) {
        Tensor noise = torch::empty({H, W});
        for (int64_t p = 0; p < H * W; ++p)
          noise.data_ptr<float>()[p] = static_cast<float>(noise_ * rng.normal());
        to.predicted[i] = (noise * map).sum().item<double>();
        write = [pixels, noise](float* image) {
          const int64_t n = noise.numel();
          for (int64_t p = 0; p < 3 * n; ++p)
            image[p] = pixels.data_ptr<float>()[p] - noise.data_ptr<float>()[p % n];
        };
      } else {
        const int64_t side = std::max<int64_t>(1, std::llround(side_ * static_cast<double>(std::min(H, W))));
        const auto top = static_cast<int64_t>(rng.below(static_cast<uint64_t>(H - side + 1))),
                   left = static_cast<int64_t>(rng.below(static_cast<uint64_t>(W - side + 1)));
        Tensor keep = torch::ones({H, W});
        keep.narrow(0, top, side).narrow(1, left, side).zero_();
        to.predicted[i] = map.narrow(0, top, side).narrow(1, left, side).sum().item<double>();
        write = blended(pixels, reference.cpu(), keep);
      }
      call.questions.ask(std::move(write),
                         [&to, owner, i, clean, wanted, kind = call.score](std::span<const double> logits) {
                           to.found[i] = clean - score_of(logits, wanted, kind);
                         });
    }
  }

  std::string perturb_ = "squares";
  int samples_ = 40;
  double side_ = 0.25, noise_ = 0.05;
  bool normalize_ = true;
};

}  // namespace

MetricRecord infidelity_metric() {
  return {.name = "infidelity",
          .summary = "mean squared error of the map's prediction when parts of the image are removed",
          .paper = "Yeh et al. 2019, On the (in)fidelity and sensitivity of explanations",
          .need = MetricNeed::kMap,
          .make = [] { return std::unique_ptr<Metric>(new Infidelity); },
          .note = "Depends on the map's values, not only on their order."};
}

}  // namespace aha
