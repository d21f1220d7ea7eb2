// sparseness: Gini index of the map's absolute values (Chalasani et al. 2020).
//
// With the n absolute values sorted ascending, x_1 <= ... <= x_n: sum_i (2 i - n - 1) x_i / (n sum_i x_i). 0
// = all pixels alike, near 1 = few pixels have everything. The target is not asked.
#include <algorithm>
#include <cmath>

#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

class Sparseness : public Metric {
 public:
  Pending measure(const MetricCall& call) override {
    std::vector<MetricValues> out;
    for (int64_t b = 0; b < call.images.size(); ++b) {
      const Tensor values = host_image(call.maps[b]).abs().contiguous();
      out.push_back({{{"sparseness",
                       gini_index({values.data_ptr<float>(), values.data_ptr<float>() + values.numel()})}}});
    }
    return [out] { return out; };
  }
};

std::unique_ptr<Metric> make_sparseness() {
  return std::make_unique<Sparseness>();
}

}  // namespace

double gini_index(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double weighted = 0, sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    weighted += (2.0 * static_cast<double>(i + 1) - n - 1) * values[i];
    sum += values[i];
  }
  return sum > 0 ? weighted / (n * sum) : 0;
}

MetricRecord sparseness_metric() {
  return {.name = "sparseness",
          .summary = "Gini index of the map's absolute values: how few pixels hold it",
          .paper = "Chalasani et al. 2020",
          .need = MetricNeed::kMap,
          .higher_is_better = true,
          .make = make_sparseness,
          .note = "Says how easy a map is to read, not whether it is right."};
}

}  // namespace aha
