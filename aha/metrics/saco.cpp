// saco: salience-guided faithfulness coefficient (Wu et al. 2024).
//
// Pixels in the order of the map form K groups of equal size. With s_i the map's sum over group i and d_i the
// score that is lost when the group shows the image's own mean color, every pair i < j adds s_i - s_j to the
// sum where d_i >= d_j and takes it away elsewhere; the coefficient is this sum over that of |s_i - s_j|. 1 =
// the groups matter in the order of the map, -1 = in the opposite one. Cost: K forward passes.
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

class SalienceCoefficient : public Metric {
 public:
  Fields fields() override {
    return Fields().add("groups", groups_, "groups of pixels that are compared").range(2, 1000);
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    auto sums = std::make_shared<std::vector<std::vector<double>>>(B),
         drops = std::make_shared<std::vector<std::vector<double>>>(B);
    for (int64_t b = 0; b < B; ++b) {
      const Tensor map = scaled_to_unit(call.maps[b]), pixels = host_image(call.images.pixels[b]);
      const Tensor ranks = ranks_of(hard_order(map.unsqueeze(0)).order[0]);
      const Tensor mean = pixels.mean({1, 2}, true).expand_as(pixels).contiguous();
      const int64_t N = ranks.numel(), wanted = call.images.classes[b].item<int64_t>();
      const double clean = score_of(values_of(call.images.clean[b]), wanted, call.score);
      (*sums)[b].resize(groups_);
      (*drops)[b].resize(groups_);
      for (int64_t i = 0; i < N; ++i)
        (*sums)[b][group_of_rank(ranks.data_ptr<int32_t>()[i], N)] += map.data_ptr<float>()[i];
      for (int g = 0; g < groups_; ++g)
        call.questions.ask(with_ranks_replaced(pixels, mean, ranks, first_rank(g, N), first_rank(g + 1, N)),
                           [=, score = call.score](std::span<const double> logits) {
                             (*drops)[b][g] = clean - score_of(logits, wanted, score);
                           });
    }
    return [=] {
      std::vector<MetricValues> out;
      for (int64_t b = 0; b < B; ++b)
        if (const auto value = salience_coefficient((*sums)[b], (*drops)[b]))
          out.push_back({{{"saco", *value}}});
        else
          out.push_back({{}, "all groups of pixels have the same sum"});
      return out;
    };
  }

 private:
  int64_t first_rank(int64_t group, int64_t pixels) const { return group * pixels / groups_; }
  int64_t group_of_rank(int64_t rank, int64_t pixels) const { return ((rank + 1) * groups_ - 1) / pixels; }

  int groups_ = 10;
};

std::unique_ptr<Metric> make_salience_coefficient() {
  return std::make_unique<SalienceCoefficient>();
}

}  // namespace

std::optional<double> salience_coefficient(const std::vector<double>& sums,
                                           const std::vector<double>& drops) {
  double agreed = 0, all = 0;
  for (size_t i = 0; i < sums.size(); ++i)
    for (size_t j = i + 1; j < sums.size(); ++j) {
      const double weight = sums[i] - sums[j];
      agreed += drops[i] >= drops[j] ? weight : -weight;
      all += std::abs(weight);
    }
  return all > 0 ? std::optional(agreed / all) : std::nullopt;
}

MetricRecord saco_metric() {
  return {.name = "saco",
          .summary = "whether groups of pixels matter in the order of the map, weighted by its values; -1..1",
          .paper = "Wu et al. 2024, SaCo",
          .need = MetricNeed::kMap,
          .higher_is_better = true,
          .make = make_salience_coefficient};
}

}  // namespace aha
