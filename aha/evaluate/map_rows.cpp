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
  std::vector<std::string> explained = {o.explained};
  if (!o.also.empty()) explained.push_back(o.also);
  const int64_t B = batch.size();
  for (const auto& name : explained)
    for (int64_t b = 0; b < B; ++b) {
      const auto& made = attribution.made[b];
      Row& row = rows_.emplace_back(Row{"",
                                        batch.images[b].id,
                                        o.method,
                                        name,
                                        batch.classes.at(name)[b].item<int64_t>(),
                                        state_of_map(maps[b], made.failure),
                                        0,
                                        {},
                                        {},
                                        made});
      for (const auto& [reference, logits] : batch.replaced)
        row.replaced[reference] = score_of(values_of(logits[b]), row.class_index);
    }
  if (o.sweep.steps == 0) return;
  for (int64_t b = 0; b < B; ++b) {
    if (!rows_[b].ok()) continue;
    // One image at a time, so that jitter follows the image.
    const auto one =
        hard_order(maps.narrow(0, b, 1), o.sweep.ties, context.seed, image_stream(batch.pixels[b]));
    std::vector<size_t> of_image;
    std::vector<int64_t> classes;
    for (size_t row = b; row < rows_.size(); row += B) {
      rows_[row].tie_rate = one.tie_rate[0].item<double>();
      of_image.push_back(row);
      classes.push_back(rows_[row].class_index);
    }
    for (const auto& [reference, pixels] : batch.references)
      asked_.push_back({of_image, reference,
                        ask_sweep(questions,
                                  {batch.pixels[b], pixels[b], one.order[0], batch.clean[b],
                                   batch.replaced.at(reference)[b], classes},
                                  o.sweep)});
  }
}

std::vector<Row> PendingRows::finish(const std::string& target) {
  for (const Asked& one : asked_)
    for (size_t c = 0; c < one.rows.size(); ++c) rows_[one.rows[c]].curves[one.reference] = (*one.curves)[c];
  for (Row& row : rows_) check_answers(row, target);
  return std::move(rows_);
}

}  // namespace aha
