// random-class-leakage: whether a map of a class that is not in the image makes the target see it (Jethani et
// al. 2023 show that class-conditional explainers can).
//
//   mean over references and k of p_c(k most important pixels inserted) - the same for the moved map
//
// c is drawn from the classes outside the most probable five (with few classes: the less probable half). The
// control is the same map moved cyclically by a random offset: as smooth and as large, but with no knowledge
// of the image. 0 = the map shows no more of c than any part of this image does; above 0 it composes evidence
// for c. A method that finds the little there is of c in the image scores above 0 too: compare methods.
// Cost: one map, and (1 + controls) * 3 forward passes for each reference.
#include "aha/base/error.h"
#include "aha/base/rng.h"
#include "aha/metrics/metric_records.h"
#include "aha/ranking/hard_order.h"

namespace aha {
namespace {

constexpr uint64_t kLeakagePurpose = 0x6c65616b;
constexpr double kLeakageShares[] = {0.1, 0.3, 0.5};

// A class that the image does not show, as far as the target can tell.
int64_t absent_class(const Tensor& logits, int64_t explained, Rng& rng) {
  const int64_t C = logits.numel(), skipped = std::min<int64_t>(5, C / 2);
  const Tensor order = logits.argsort(0, /*descending=*/true);
  std::vector<int64_t> rest;
  for (int64_t i = skipped; i < C; ++i)
    if (const auto c = order[i].item<int64_t>(); c != explained) rest.push_back(c);
  if (rest.empty())
    throw input_error("random-class-leakage: expected a target with more than two classes, found {}", C);
  return rest[rng.below(rest.size())];
}

class RandomClassLeakage : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("controls", controls_, "moved copies of the map that it is compared with")
        .range(1, 1000);
  }

  Pending measure(const MetricCall& call) override {
    const auto& images = call.images;
    const int64_t B = images.size();
    std::vector<Rng> rngs;
    Tensor classes = torch::empty({B}, torch::kInt64);
    for (int64_t b = 0; b < B; ++b) {
      rngs.emplace_back(call.context.seed, stream_id({kLeakagePurpose, images.streams[b]}));
      classes[b] = absent_class(images.clean[b], images.classes[b].item<int64_t>(), rngs[b]);
    }
    const Tensor maps =
        call.explain(nullptr, images.pixels, classes.to(images.pixels.device()), images.streams);
    auto out = std::make_shared<std::vector<MetricValues>>(B);
    for (int64_t b = 0; b < B; ++b) {
      if (!torch::isfinite(maps[b]).all().item<bool>()) {
        (*out)[b].missing = "no map of a random class";
        continue;
      }
      const int64_t wanted = classes[b].item<int64_t>(), H = maps.size(1), W = maps.size(2);
      for (int moved = 0; moved <= controls_; ++moved) {
        Tensor map = maps[b];
        if (moved > 0)
          map = map.roll({static_cast<int64_t>(rngs[b].below(static_cast<uint64_t>(H))),
                          static_cast<int64_t>(rngs[b].below(static_cast<uint64_t>(W)))},
                         {0, 1});
        ask(call, b, wanted, map, moved == 0 ? 1.0 : -1.0 / controls_, out);
      }
    }
    return [out] { return *out; };
  }

 private:
  static void ask(const MetricCall& call, int64_t b, int64_t wanted, const Tensor& map, double sign,
                  const std::shared_ptr<std::vector<MetricValues>>& out) {
    const Tensor order = hard_order(map.unsqueeze(0)).order;  // (1, N)
    for (const double share : kLeakageShares) {
      const auto count = static_cast<int64_t>(share * static_cast<double>(map.numel()));
      const Tensor keep =
          torch::zeros({1, map.numel()}).scatter_(1, order.narrow(1, 0, count), 1.0).view_as(map);
      for (const auto& [name, reference] : call.images.references)
        call.questions.ask(
            blended(call.images.pixels[b].cpu().contiguous(), reference[b].cpu().contiguous(), keep),
            [=, part = "random-class-leakage@" + name](std::span<const double> logits) {
              (*out)[b].values[part] += sign * score_of(logits, wanted) / std::size(kLeakageShares);
            });
    }
  }

  int controls_ = 4;
};

}  // namespace

MetricRecord random_class_leakage_metric() {
  return {.name = "random-class-leakage",
          .summary =
              "probability of a class that is not in the image when what its map shows is inserted, "
              "minus that of the map moved to another place",
          .paper = "Jethani et al. 2023, Don't be fooled: label leakage in explanation methods",
          .need = MetricNeed::kExplain,
          .make = [] { return std::unique_ptr<Metric>(new RandomClassLeakage); }};
}

}  // namespace aha
