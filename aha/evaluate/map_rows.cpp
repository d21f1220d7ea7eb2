#include "aha/evaluate/map_rows.h"

#include <algorithm>
#include <cmath>

namespace aha {
namespace {

bool finite(const std::vector<double>& curve) {
  return std::all_of(curve.begin(), curve.end(), [](double value) { return std::isfinite(value); });
}

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

}  // namespace

std::string state_of_map(const Tensor& map, const std::string& failure) {
  if (!failure.empty()) return failure;
  if (!map.isfinite().all().item<bool>()) return "the map is not finite";
  return (map == map[0][0]).all().item<bool>() ? "constant" : "ok";
}

PendingRows::PendingRows(ScoreQueue& questions, const ImageBatch& batch, const Attribution& attribution,
                         const MapRowOptions& o, const Context& context) {
  const Tensor& maps = attribution.maps;  // (B, H, W)
  const Tensor classes = batch.classes.at(o.explained);
  for (int64_t b = 0; b < batch.size(); ++b) {
    const std::string& id = batch.images[b].id;
    const auto& made = attribution.made[b];
    Row& row = rows_.emplace_back(Row{"",
                                      id,
                                      o.method,
                                      o.explained,
                                      classes[b].item<int64_t>(),
                                      state_of_map(maps[b], made.failure),
                                      0,
                                      {},
                                      {},
                                      made});
    for (const auto& [reference, logits] : batch.replaced)
      row.replaced[reference] = score_of(values_of(logits[b]), row.class_index);
    if (!row.ok() || o.sweep.steps == 0) continue;
    // One image at a time, so that jitter follows the image.
    const auto one = hard_order(maps.narrow(0, b, 1), o.sweep.ties, context.seed, image_stream(id));
    row.tie_rate = one.tie_rate[0].item<double>();
    for (const auto& [reference, pixels] : batch.references)
      asked_.push_back({rows_.size() - 1, reference,
                        ask_sweep(questions,
                                  {batch.pixels[b],
                                   pixels[b],
                                   one.order[0],
                                   batch.clean[b],
                                   batch.replaced.at(reference)[b],
                                   {row.class_index}},
                                  o.sweep)});
  }
}

std::vector<Row> PendingRows::finish(const std::string& target) {
  for (const Asked& one : asked_) rows_[one.row].curves[one.reference] = one.curves->front();
  for (Row& row : rows_) check_answers(row, target);
  return std::move(rows_);
}

}  // namespace aha
