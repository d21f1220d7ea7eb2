// seg-accuracy, seg-miou, seg-map, seg-map-binary, seg-f1-rows, seg-f1: the map as a segmentation of the
// object (the ImageNet segmentation benchmark of Guillaumin et al. 2014, as Chefer et al. 2021 use it).
//
// With S the map scaled to 0..1, foreground is where S is above its mean.
//
//   seg-accuracy     found foreground pixels / foreground pixels, over all images: the benchmark calls this
//   recall
//                    pixel accuracy
//   seg-miou         mean of the IoU of background and of foreground, intersections and unions over all
//   images seg-map          average precision of the scores (1 - S, S) for (background, foreground), mean
//   over images seg-map-binary   the same of the binary map; a^2 + (1 - a) / 2 with a the share of right
//   pixels seg-f1-rows      the benchmark's F1: of each row of pixels (0 where a row has no hit), mean over
//   rows seg-f1           the ordinary F1 of an image, mean over images
#include <algorithm>
#include <numeric>

#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

struct SegCounts {
  int64_t hits = 0, predicted = 0, true_ones = 0, pixels = 0;

  double f1() const {
    return hits > 0 ? 2.0 * static_cast<double>(hits) / static_cast<double>(predicted + true_ones) : 0;
  }
  int64_t right_background() const { return pixels - predicted - true_ones + hits; }
  double correct() const {
    return static_cast<double>(hits + right_background()) / static_cast<double>(pixels);
  }
};

MetricValues segmentation_of(const Tensor& map, const Tensor& mask) {
  const Tensor scores = scaled_to_unit(map), truth = mask.to(torch::kCPU).contiguous();
  const int64_t H = map.size(0), W = map.size(1), N = H * W;
  const float* s = scores.data_ptr<float>();
  const bool* object = truth.data_ptr<bool>();
  const double mean = std::accumulate(s, s + N, 0.0) / static_cast<double>(N);
  SegCounts all;
  double row_f1 = 0;
  for (int64_t y = 0; y < H; ++y) {
    SegCounts row;
    for (int64_t i = y * W; i < (y + 1) * W; ++i) {
      const bool found = s[i] > mean;
      row.hits += found && object[i];
      row.predicted += found;
      row.true_ones += object[i];
    }
    row_f1 += row.f1() / static_cast<double>(H);
    all.hits += row.hits, all.predicted += row.predicted, all.true_ones += row.true_ones, all.pixels += W;
  }
  std::vector<float> stacked(s, s + N);
  std::vector<uint8_t> labels(object, object + N);
  for (int64_t i = 0; i < N; ++i) {
    stacked.push_back(1 - s[i]);
    labels.push_back(!object[i]);
  }
  const double a = all.correct();
  return {{{"seg-accuracy@found", static_cast<double>(all.hits)},
           {"seg-accuracy@object", static_cast<double>(all.true_ones)},
           {"seg-miou@object-both", static_cast<double>(all.hits)},
           {"seg-miou@object-either", static_cast<double>(all.predicted + all.true_ones - all.hits)},
           {"seg-miou@background-both", static_cast<double>(all.right_background())},
           {"seg-miou@background-either", static_cast<double>(all.pixels - all.hits)},
           {"seg-map", average_precision(stacked, labels)},
           {"seg-map-binary", a * a + (1 - a) / 2},
           {"seg-f1-rows", row_f1},
           {"seg-f1", all.f1()}}};
}

class Segmentation : public Metric {
 public:
  Pending measure(const MetricCall& call) override {
    std::vector<MetricValues> out;
    for (int64_t b = 0; b < call.images.size(); ++b)
      out.push_back(call.images.annotations[b].mask.defined()
                        ? segmentation_of(call.maps[b], call.images.annotations[b].mask)
                        : MetricValues{{}, "no mask"});
    return [out] { return out; };
  }
};

std::unique_ptr<Metric> make_segmentation() {
  return std::make_unique<Segmentation>();
}

double share_or_zero(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double accuracy_of_means(const std::map<std::string, double>& means) {
  return share_or_zero(means.at("found"), means.at("object"));
}

double miou_of_means(const std::map<std::string, double>& means) {
  return (share_or_zero(means.at("object-both"), means.at("object-either")) +
          share_or_zero(means.at("background-both"), means.at("background-either"))) /
         2;
}

}  // namespace

double average_precision(const std::vector<float>& scores, const std::vector<uint8_t>& labels) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  const auto positives =
      static_cast<double>(std::count_if(labels.begin(), labels.end(), [](uint8_t l) { return l != 0; }));
  double sum = 0, hits = 0;
  for (size_t i = 0; i < order.size();) {  // equal scores are one threshold
    double more = 0;
    size_t j = i;
    for (; j < order.size() && scores[order[j]] == scores[order[i]]; ++j) more += labels[order[j]] != 0;
    hits += more;
    sum += more * hits / static_cast<double>(j);
    i = j;
  }
  return share_or_zero(sum, positives);
}

std::vector<MetricRecord> segmentation_metrics() {
  const auto one = [](std::string name, std::string summary,
                      double (*of_means)(const std::map<std::string, double>&) = nullptr) {
    return MetricRecord{.name = std::move(name),
                        .summary = std::move(summary),
                        .paper = "Guillaumin et al. 2014; Chefer et al. 2021",
                        .need = MetricNeed::kMask,
                        .higher_is_better = true,
                        .make = make_segmentation,
                        .of_means = of_means};
  };
  return {
      one("seg-accuracy", "share of the object's pixels where the map is above its mean", accuracy_of_means),
      one("seg-miou", "mean IoU of object and background, the map cut at its mean", miou_of_means),
      one("seg-map", "average precision of the map's values for object and background"),
      one("seg-map-binary", "the same, the map cut at its mean"),
      one("seg-f1-rows", "F1 of each row of pixels, the map cut at its mean"),
      one("seg-f1", "F1 of the object, the map cut at its mean")};
}

}  // namespace aha
