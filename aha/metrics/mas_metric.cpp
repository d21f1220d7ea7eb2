// mas-insertion, mas-deletion, mas and rise-insertion, rise-deletion, rise: magnitude aligned scoring (mas.h)
// and the normalized, monotone curves it begins with.
//
// Insertion starts from the blurred image (where the evaluation has no blur, from its first reference),
// deletion ends at the color that is zero in the normalized image, as published. The map must not be
// negative: it is scaled to 0..1, or cut at 0. Cost: two forward passes for each step, 446 at 224 pixels.
#include "aha/metrics/mas.h"
#include "aha/metrics/metric_records.h"

namespace aha {
namespace {

class MagnitudeAligned : public Metric {
 public:
  Fields fields() override {
    return Fields()
        .add("step", step_px_, "pixels of a step; 0 = as many as the image is wide")
        .range(0, 1e9)
        .add("transform", transform_, "how a map becomes non-negative: scaled to 0..1, or cut at 0")
        .choices({"minmax", "relu"});
  }

  Pending measure(const MetricCall& call) override {
    const int64_t B = call.images.size();
    auto out = std::make_shared<std::vector<MetricValues>>(B);
    std::vector<std::shared_ptr<Asked>> asked;
    for (int64_t b = 0; b < B; ++b) {
      const Tensor map =
          transform_ == "relu" ? host_image(call.maps[b]).relu() : scaled_to_unit(call.maps[b]);
      if (map.max().item<float>() > 0)
        for (const MasTest test : {MasTest::kInsertion, MasTest::kDeletion}) {
          asked.push_back(std::make_shared<Asked>(Asked{b, test, {}}));
          ask(call, asked.back(), mas_steps(map, step_px_));
        }
      else
        (*out)[b].missing = "the map has no value above 0";
    }
    return [out, asked] {
      for (const auto& one : asked) {
        const MasCurve curve = mas_curve(one->test, one->input);
        const std::string test = one->test == MasTest::kInsertion ? "insertion" : "deletion";
        (*out)[one->image].values["mas-" + test] = curve.mas;
        (*out)[one->image].values["rise-" + test] = curve.rise;
      }
      return *out;
    };
  }

 private:
  struct Asked {
    int64_t image;
    MasTest test;
    MasInput input;
  };

  static void ask(const MetricCall& call, const std::shared_ptr<Asked>& asked, const MasSteps& steps) {
    const int64_t b = asked->image, N = steps.ranks.numel(), M = std::ssize(steps.mass);
    const int64_t wanted = call.images.classes[b].item<int64_t>();
    const bool up = asked->test == MasTest::kInsertion;
    const Tensor pixels = host_image(call.images.pixels[b]);
    MasInput& input = asked->input;
    input.mass = steps.mass;
    input.probabilities.resize(static_cast<size_t>(M + 1));
    input.clean = score_of(values_of(call.images.clean[b]), wanted, call.score);
    input.probabilities[up ? M : 0] = input.clean;
    const auto put_reference = [=, score = call.score](std::span<const double> logits) {
      asked->input.reference = asked->input.probabilities[up ? 0 : M] = score_of(logits, wanted, score);
    };
    Tensor reference;
    if (up) {
      const auto blur = call.images.references.find("blur");
      const std::string name =
          blur != call.images.references.end() ? "blur" : call.images.references.begin()->first;
      reference = host_image(call.images.references.at(name)[b]);
      put_reference(values_of(call.images.replaced.at(name)[b]));
    } else {
      reference = normal_zero(call.target, pixels);
      call.questions.ask(
          [reference](float* to) { std::copy_n(reference.data_ptr<float>(), reference.numel(), to); },
          put_reference);
    }
    for (int64_t i = 1; i < M; ++i)
      call.questions.ask(up ? with_ranks_replaced(pixels, reference, steps.ranks, i * steps.step, N)
                            : with_ranks_replaced(pixels, reference, steps.ranks, 0, i * steps.step),
                         [=, score = call.score](std::span<const double> logits) {
                           asked->input.probabilities[i] = score_of(logits, wanted, score);
                         });
  }

  int64_t step_px_ = 0;
  std::string transform_ = "minmax";
};

std::unique_ptr<Metric> make_magnitude_aligned() {
  return std::make_unique<MagnitudeAligned>();
}

}  // namespace

std::vector<MetricRecord> mas_metrics() {
  const auto one = [](std::string name, std::string summary, bool higher,
                      std::vector<std::string> parts = {}) {
    MetricRecord record{.name = std::move(name),
                        .summary = std::move(summary),
                        .paper = "Walker et al. 2024, MAS",
                        .need = MetricNeed::kMap,
                        .higher_is_better = higher,
                        .parts = std::move(parts)};
    if (record.parts.empty()) record.make = make_magnitude_aligned;
    return record;
  };
  return {one("mas-deletion", "normalized deletion, punished where it does not fall as the map's sum does",
              false),
          one("mas-insertion", "normalized insertion, punished where it does not rise as the map's sum does",
              true),
          one("mas", "mas-insertion minus mas-deletion", true, {"mas-deletion", "mas-insertion"}),
          one("rise-deletion", "deletion curve scaled between image and gray, made monotone", false),
          one("rise-insertion", "insertion curve scaled between blur and image, made monotone", true),
          one("rise", "rise-insertion minus rise-deletion", true, {"rise-deletion", "rise-insertion"})};
}

}  // namespace aha
