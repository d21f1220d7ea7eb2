#include "aha/app/scored_map.h"

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/base/timer.h"
#include "aha/networks/bf16_copy.h"

namespace aha {
namespace {

constexpr const char* kScoredReferences[] = {"black", "mean", "blur"};  // of all_references()

}  // namespace

std::vector<ScoredMap> made_maps(Method& method, const std::string& spec, const Tensor& pixels,
                                 const Tensor& classes, const std::vector<std::string>& images,
                                 const Context& context) {
  const std::vector<uint64_t> streams = image_streams(pixels);
  method.name_images(images, streams);
  const Timer timer;
  const Attribution attribution = method.attribute(pixels, classes.to(pixels.device()), streams, context);
  const Tensor maps = attribution.maps.to(torch::kCPU, torch::kFloat32).contiguous();  // (B, H, W)
  const double seconds = timer.seconds() / static_cast<double>(images.size());
  for (size_t b = 0; b < images.size(); ++b) {
    if (!attribution.made[b].failure.empty())
      throw work_error("{}: {}", images[b], attribution.made[b].failure);
    if (!maps[static_cast<int64_t>(b)].isfinite().all().item<bool>())
      throw work_error("{}: the map of {} is not finite", images[b], spec);
  }
  std::vector<ScoredMap> out;
  for (size_t b = 0; b < images.size(); ++b) {
    out.push_back({maps[static_cast<int64_t>(b)], attribution.made[b], seconds, {}});
    if (out.back().constant())
      spdlog::warn("{}: the map of {} is constant: it ranks no pixel before another", images[b], spec);
  }
  return out;
}

Scorer::Scorer(Classifier& target, const Context& context)
    : own_copy_(bf16_copy(target, context)),
      copy_(own_copy_.get()),
      asked_(copy_ ? *copy_ : target),
      context_(context) {}

Scorer::Scorer(Classifier& target, Classifier* copy, const Context& context)
    : copy_(copy), asked_(copy ? *copy : target), context_(context) {}

const char* Scorer::precision() const {
  return copy_ || context_.precision == Precision::kBf16 ? "bf16" : "f32";
}

void Scorer::score(std::span<std::vector<ScoredMap>* const> methods, const Tensor& pixels,
                   const Tensor& classes, const std::vector<Tensor>& references) {
  std::vector<Tensor> maps;  // each (B, H, W)
  for (const auto* method : methods) {
    std::vector<Tensor> rows;
    for (const auto& one : *method) rows.push_back(one.map);
    maps.push_back(torch::stack(rows));
  }
  const auto scores = score_maps(asked_, pixels, maps, classes, references, context_);
  for (size_t m = 0; m < methods.size(); ++m)
    for (size_t b = 0; b < methods[m]->size(); ++b) (*methods[m])[b].score = scores[m][b];
}

bool ScoredMap::constant() const {
  return (map == map[0][0]).all().item<bool>();
}

nlohmann::ordered_json json_from_curves(const MapScore& score) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (size_t r = 0; r < score.curves.size() && r < std::size(kScoredReferences); ++r)
    json[kScoredReferences[r]] = {{"top", score.curves[r].top}, {"bottom", score.curves[r].bottom}};
  return json;
}

void add_to_json(nlohmann::ordered_json& json, const ScoredMap& m) {
  json["refine"] = m.made.steps;
  json["loss"] = std::isfinite(m.made.loss) ? nlohmann::ordered_json(m.made.loss) : nlohmann::ordered_json();
  json["passes"] = {{"forwards", m.made.passes.forwards}, {"backwards", m.made.passes.backwards}};
  if (m.score) {
    json["deletion"] = m.score->deletion;
    json["insertion"] = m.score->insertion;
  }
  if (m.constant()) json["constant"] = true;
  json["seconds"] = m.seconds;
}

}  // namespace aha
