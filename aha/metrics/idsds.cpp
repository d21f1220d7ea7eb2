// idsds: in-domain single deletion score (Hesse et al. 2024).
//
// The image is divided into grid x grid cells. Each is deleted alone: it shows the color that is zero in the
// normalized image. The value is Spearman's correlation, over the cells, between the map's sum in a cell and
// the logit that its deletion costs. "In-domain" holds for targets that learned to see images with deleted
// cells; others are measured all the same, and a warning says so. Cost: grid^2 forward passes.
#include "aha/base/log.h"
#include "aha/base/rank_correlation.h"
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

class SingleDeletion : public Metric {
 public:
  Fields fields() override {
    return Fields().add("grid", grid_, "cells along a side of the image").range(2, 64);
  }

  Pending measure(const MetricCall& call) override {
    warn_once(call.target.info());
    const int64_t B = call.images.size(), H = call.maps.size(1), W = call.maps.size(2);
    if (H < grid_ || W < grid_)
      throw input_error("metric idsds: grid: expected at most {} cells a side, found {}", std::min(H, W),
                        grid_);
    Tensor cells = torch::empty({H * W}, torch::kInt32);  // the cell of each pixel
    for (int64_t i = 0; i < H * W; ++i)
      cells.data_ptr<int32_t>()[i] = static_cast<int32_t>((i / W) * grid_ / H * grid_ + (i % W) * grid_ / W);
    const auto count = static_cast<size_t>(grid_ * grid_);
    auto sums = std::make_shared<std::vector<std::vector<double>>>(B, std::vector<double>(count)),
         drops = std::make_shared<std::vector<std::vector<double>>>(B, std::vector<double>(count));
    for (int64_t b = 0; b < B; ++b) {
      const Tensor map = host_image(call.maps[b]), pixels = host_image(call.images.pixels[b]),
                   gray = normal_zero(call.target, pixels);
      const int64_t wanted = call.images.classes[b].item<int64_t>();
      const double clean = score_of(values_of(call.images.clean[b]), wanted, ScoreKind::kLogit);
      for (int64_t i = 0; i < H * W; ++i)
        (*sums)[b][cells.data_ptr<int32_t>()[i]] += map.data_ptr<float>()[i];
      for (size_t cell = 0; cell < count; ++cell)
        call.questions.ask(with_ranks_replaced(pixels, gray, cells, static_cast<int64_t>(cell),
                                               static_cast<int64_t>(cell) + 1),
                           [=](std::span<const double> logits) {
                             (*drops)[b][cell] = clean - score_of(logits, wanted, ScoreKind::kLogit);
                           });
    }
    return [=] {
      std::vector<MetricValues> out;
      for (int64_t b = 0; b < B; ++b) {
        const auto same = [](const std::vector<double>& v) {
          return std::all_of(v.begin(), v.end(), [&](double x) { return x == v[0]; });
        };
        if (same((*sums)[b]) || same((*drops)[b]))
          out.push_back({{}, "all cells have the same sum, or cost the same"});
        else
          out.push_back({{{"idsds", rank_correlation((*sums)[b], (*drops)[b])}}});
      }
      return out;
    };
  }

 private:
  void warn_once(const ClassifierInfo& target) {
    if (!target.masked_training && !std::exchange(warned_, true))
      spdlog::warn(
          "idsds: {} does not say that it was trained on images with removed regions; what it answers to a "
          "deleted "
          "cell may be a guess",
          target.name);
  }

  int grid_ = 4;
  bool warned_ = false;
};

std::unique_ptr<Metric> make_single_deletion() {
  return std::make_unique<SingleDeletion>();
}

}  // namespace

MetricRecord idsds_metric() {
  return {
      .name = "idsds",
      .summary = "rank correlation between the map's sums in grid cells and what deleting each cell costs",
      .paper = "Hesse et al. 2024, IDSDS",
      .need = MetricNeed::kMap,
      .higher_is_better = true,
      .make = make_single_deletion,
      .note =
          "In-domain only for targets trained on images with removed regions (mask-share of their recipe)."};
}

}  // namespace aha
