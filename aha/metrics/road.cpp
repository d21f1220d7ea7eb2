// road-morf, road-lerf, road: remove and debias (Rong et al. 2022).
//
// The most (morf) or least (lerf) important share of the pixels is imputed from the others
// (linear_imputation.h) and gets a little noise, so that the removed area does not show its own shape; the
// score of the class is averaged over the shares. road = lerf - morf. The names with -hits average whether
// the class still is the answer, which is what the paper plots. Pixels are ranked with ROAD's jitter of 1e-4,
// so that ties are broken at random. Cost: two forward passes and two sparse factorizations for each share.
#include "aha/base/rng.h"
#include "aha/metrics/linear_imputation.h"
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

constexpr uint64_t kRoadNoise = 0x726f6164;  // tells its random numbers from others of the image

class Road : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("noise", noise_, "standard deviation of what is added to imputed pixels, in 0..1")
        .range(0, 1)
        .add("levels", levels_, "shares of the pixels that are removed")
        .range(0, 0.99);
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size(), H = call.maps.size(1), W = call.maps.size(2);
    if (levels_.empty()) throw input_error("metric road: levels: expected one share or more, found none");
    if (!grid_ || grid_->height != H || grid_->width != W)
      grid_ = std::make_shared<const ImputationGrid>(imputation_grid(H, W));
    auto out = std::make_shared<std::vector<MetricValues>>(B);
    for (int64_t b = 0; b < B; ++b) {
      for (const char* name : {"road-morf", "road-lerf", "road-morf-hits", "road-lerf-hits"})
        (*out)[b].values[name] = 0;
      const uint64_t stream = call.images.streams[b];
      const Tensor order =
          hard_order(call.maps.narrow(0, b, 1), TieRule::kJitter, call.context.seed, stream).order[0];
      const Tensor ranks = ranks_of(order), pixels = host_image(call.images.pixels[b]);
      const int64_t wanted = call.images.classes[b].item<int64_t>();
      for (size_t level = 0; level < levels_.size(); ++level)
        for (const bool most : {true, false}) {
          const Rng noise(call.context.seed, stream_id({kRoadNoise, stream, level, most}));
          call.questions.ask(
              imputed(pixels, ranks, levels_[level], most, noise),
              [=, score = call.score, share = 1.0 / static_cast<double>(levels_.size()),
               name = std::string(most ? "road-morf" : "road-lerf")](std::span<const double> logits) {
                auto& values = (*out)[b].values;
                values[name] += share * score_of(logits, wanted, score);
                values[name + "-hits"] += share * (is_top(logits, wanted) ? 1 : 0);
              });
        }
    }
    return [out] { return *out; };
  }

 private:
  ScoreQueue::Write imputed(const Tensor& pixels, const Tensor& ranks, double share, bool most,
                            Rng noise) const {
    return [=, grid = grid_, sigma = noise_](float* to) {
      const int64_t N = ranks.numel();
      const auto count = static_cast<int64_t>(share * static_cast<double>(N) + 1e-9);
      std::vector<uint8_t> missing(static_cast<size_t>(N));
      for (int64_t i = 0; i < N; ++i) {
        const int64_t rank = ranks.data_ptr<int32_t>()[i];
        missing[i] = most ? rank < count : rank >= N - count;
      }
      const std::span<float> image(to, static_cast<size_t>(3 * N));
      std::copy_n(pixels.data_ptr<float>(), 3 * N, to);
      impute(*grid, missing, image);
      Rng random = noise;
      for (int64_t i = 0; i < 3 * N; ++i)
        if (missing[i % N]) image[i] += static_cast<float>(sigma * random.normal());
    };
  }

  double noise_ = 0.01;
  std::vector<double> levels_ = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  std::shared_ptr<const ImputationGrid> grid_;
};

std::unique_ptr<Metric> make_road() {
  return std::make_unique<Road>();
}

}  // namespace

std::vector<MetricRecord> road_metrics() {
  const std::string paper = "Rong et al. 2022, ROAD";
  const auto one = [&](std::string name, std::string summary, bool higher) {
    return MetricRecord{.name = std::move(name),
                        .summary = std::move(summary),
                        .paper = paper,
                        .need = MetricNeed::kMap,
                        .higher_is_better = higher,
                        .make = make_road};
  };
  const auto difference = [&](std::string name, std::string summary, std::vector<std::string> parts) {
    return MetricRecord{.name = std::move(name),
                        .summary = std::move(summary),
                        .paper = paper,
                        .need = MetricNeed::kMap,
                        .higher_is_better = true,
                        .parts = std::move(parts)};
  };
  return {
      one("road-morf", "probability while the most important pixels are imputed from the others", false),
      one("road-lerf", "probability while the least important pixels are imputed from the others", true),
      difference("road", "road-lerf minus road-morf", {"road-morf", "road-lerf"}),
      one("road-morf-hits", "share of levels still recognized, most important pixels imputed", false),
      one("road-lerf-hits", "share of levels still recognized, least important pixels imputed", true),
      difference("road-hits", "road-lerf-hits minus road-morf-hits", {"road-morf-hits", "road-lerf-hits"})};
}

}  // namespace aha
