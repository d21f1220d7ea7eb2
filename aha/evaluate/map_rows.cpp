#include "aha/evaluate/map_rows.h"

#include <algorithm>
#include <cmath>

namespace aha {
namespace {

std::string state_of(const Tensor& map, const std::string& failure) {
  if (!failure.empty()) return failure;
  if (!map.isfinite().all().item<bool>()) return "the map is not finite";
  return (map == map[0][0]).all().item<bool>() ? "constant" : "ok";
}

bool finite(const std::vector<double>& curve) {
  return std::all_of(curve.begin(), curve.end(), [](double value) { return std::isfinite(value); });
}

// A row whose target does not answer for a perturbed or fully replaced image has no figures.
void check_answers(Row& row, const std::string& target) {
  bool answered = true;
  for (const auto& [reference, curves] : row.curves)
    answered = answered && finite(curves.top) && finite(curves.bottom);
  for (const auto& [reference, probability] : row.replaced) answered = answered && std::isfinite(probability);
  if (answered) return;
  if (!row.failed()) row.state = target + " gives no finite probability for a perturbed image";
  row.curves.clear();
  row.replaced.clear();
}

std::vector<Row> swept_rows(Classifier& target, const ImageBatch& batch, const Attribution& attribution,
                            const MapRowOptions& o, const Context& context) {
  const Tensor& maps = attribution.maps;  // (B, H, W)
  const Tensor classes = batch.classes.at(o.explained);
  std::vector<Row> rows;
  std::vector<int64_t> usable;
  std::vector<Tensor> orders;  // of the usable maps, (1, H * W)
  for (int64_t b = 0; b < batch.size(); ++b) {
    const std::string& id = batch.images[b].id;
    Row row{"",
            id,
            o.method,
            o.explained,
            classes[b].item<int64_t>(),
            state_of(maps[b], attribution.made[b].failure),
            0,
            {},
            {},
            attribution.made[b]};
    for (const auto& [reference, probs] : batch.replaced)
      row.replaced[reference] = probs[b][row.class_index].item<double>();
    if (row.ok()) {
      // One image at a time, so that jitter follows the image.
      const auto one = hard_order(maps.narrow(0, b, 1), o.sweep.ties, context.seed, image_stream(id));
      row.tie_rate = one.tie_rate[0].item<double>();
      orders.push_back(one.order);
      usable.push_back(b);
    }
    rows.push_back(std::move(row));
  }
  if (usable.empty()) return rows;
  const ImageBatch swept = chosen_images(batch, usable);
  for (const auto& [reference, pixels] : swept.references) {
    const auto curves = sweep(target, swept.pixels, pixels, torch::cat(orders), swept.classes.at(o.explained),
                              {swept.clean, swept.replaced.at(reference)}, o.sweep, context);
    for (size_t i = 0; i < usable.size(); ++i) rows[usable[i]].curves[reference] = curves[i];
  }
  return rows;
}

}  // namespace

std::vector<Row> rows_of_maps(Classifier& target, const ImageBatch& batch, const Attribution& attribution,
                              const MapRowOptions& options, const Context& context) {
  auto rows = swept_rows(target, batch, attribution, options, context);
  for (Row& row : rows) check_answers(row, target.info().name);
  return rows;
}

}  // namespace aha
