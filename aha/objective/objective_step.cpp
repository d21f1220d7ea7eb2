#include "aha/objective/objective_step.h"

#include "aha/tensor/torch.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/objective/sequence_probabilities.h"
#include "aha/objective/terms.h"

namespace aha {
namespace {

constexpr uint64_t kGridPurpose = 0x67726964, kReferencePurpose = 0x72656673;

uint64_t unsigned_of(int64_t value) {
  return static_cast<uint64_t>(value);
}

}  // namespace

Fields fields(ObjectiveOptions& o) {
  return Fields()
      .add("perturbation-steps", o.steps, "S: perturbed images of each direction")
      .range(1, 4096)
      .add("lambda-deletion", o.lambda_deletion, "weight of the deletion term")
      .range(0, 1e6)
      .add("lambda-insertion", o.lambda_insertion, "weight of the insertion term")
      .range(0, 1e6)
      .add("lambda-smoothness", o.lambda_smoothness, "weight of the smoothness term")
      .range(0, 1e6)
      .add("smoothness-window", o.window_px, "side of the averaging filter in pixels, odd")
      .range(1, 99)
      .add("grid-low", o.grid_low, "smallest G of the G x G region grid")
      .range(1, 512)
      .add("grid-high", o.grid_high, "largest G")
      .range(1, 512)
      .add("grid-offsets", o.grid_offsets, "shift the grid by a random part of a region")
      .add("tau", o.tau, "temperature of the soft order")
      .range(1e-6, 1e6)
      .add("tau-final", o.tau_final, "temperature at the last step, if it is to change; -1 = tau")
      .range(-1, 1e6)
      .add("noise", o.noise, "scale of the Gumbel noise; the paper has 1")
      .range(0, 1e6)
      .add("noise-final", o.noise_final,
           "scale of the Gumbel noise at the last step, if it is to change; -1 = noise")
      .range(-1, 1e6)
      .add("sinkhorn-iterations", o.iterations, "row and column normalizations")
      .range(1, 10000)
      .add("jitter", o.jitter, "k at a random place of each of S strata")
      .add("references", o.references, "what replaces removed pixels")
      .choices({"black", "mean", "blur"})
      .add("reference-choice", o.reference_choice, "one drawn for each image and step, or all of them")
      .choices({"one", "all"})
      .add("spread-ks", o.spread_ks, "values of k of its own for each of all references")
      .nest("", fields(o.reference));
}

void check_options(const ObjectiveOptions& o) {
  if (o.grid_low > o.grid_high)
    throw input_error("grid: expected low <= high, found {} and {}", o.grid_low, o.grid_high);
  if (o.references.empty())
    throw input_error("references: expected at least one of black, mean, blur, found none");
  if (o.tau_final != -1 && !(o.tau_final >= 1e-6))
    throw input_error("tau-final: expected 1e-06 or more, or -1 for tau, found {}", o.tau_final);
  if (o.noise_final != -1 && !(o.noise_final >= 0))
    throw input_error("noise-final: expected 0 or more, or -1 for noise, found {}", o.noise_final);
  if (o.window_px % 2 == 0)
    throw input_error("smoothness-window: expected an odd number, found {}", o.window_px);
}

double final_tau(const ObjectiveOptions& o) {
  return o.tau_final == -1 ? o.tau : o.tau_final;
}
double final_noise(const ObjectiveOptions& o) {
  return o.noise_final == -1 ? o.noise : o.noise_final;
}

ObjectiveStep draw_step(const ObjectiveOptions& options, const StepPlace& place, int64_t images,
                        int64_t height, int64_t width) {
  check_options(options);
  ObjectiveStep step;
  Rng rng(place.seed, stream_id({kGridPurpose, unsigned_of(place.step), unsigned_of(place.group)}));
  const int G =
      options.grid_low + static_cast<int>(rng.below(unsigned_of(options.grid_high - options.grid_low + 1)));
  const double y = rng.uniform(), x = rng.uniform();
  step.grid = make_grid(height, width, G, options.grid_offsets ? y : 0, options.grid_offsets ? x : 0);
  const auto rounds = static_cast<size_t>(rounds_of(options));
  step.ks = perturbation_counts(step.grid.K(),
                                options.spread_ks ? options.steps * rounds_of(options) : options.steps,
                                options.jitter ? &rng : nullptr);
  step.references.resize(rounds);
  for (int64_t b = 0; b < images; ++b) {
    Rng draw(place.seed,
             stream_id({kReferencePurpose, unsigned_of(place.step), unsigned_of(place.first_image + b)}));
    const size_t drawn = draw.below(options.references.size());
    for (size_t r = 0; r < rounds; ++r)
      step.references[r].push_back(options.references[rounds > 1 ? r : drawn]);
  }
  step.sort.tau = options.tau * std::pow(final_tau(options) / options.tau, place.progress);
  step.sort.noise = options.noise + (final_noise(options) - options.noise) * place.progress;
  step.sort.iterations = options.iterations;
  step.noise = {unsigned_of(place.step), unsigned_of(place.first_image)};
  return step;
}

int64_t rounds_of(const ObjectiveOptions& options) {
  return options.reference_choice == "all" ? std::ssize(options.references) : 1;
}

std::map<std::string, Tensor> kept_references(Classifier& target, const Tensor& pixels,
                                              const ObjectiveOptions& options) {
  const ReferenceOptions reference = with_mean_color(options.reference, target.info().mean_color);
  std::map<std::string, Tensor> all;
  for (const auto& kind : options.references)
    all[kind] = reference_images(pixels, std::vector(static_cast<size_t>(pixels.size(0)), kind), reference);
  return all;
}

Tensor references_of(Classifier& target, const ObjectiveImages& images, const std::vector<std::string>& kinds,
                     const ObjectiveOptions& options) {
  if (images.references.empty())
    return reference_images(images.pixels, kinds,
                            with_mean_color(options.reference, target.info().mean_color));
  std::vector<Tensor> rows;
  for (size_t b = 0; b < kinds.size(); ++b)
    rows.push_back(images.references.at(kinds[b]).narrow(0, static_cast<int64_t>(b), 1));
  return torch::cat(rows);
}

ObjectiveResult objective(Classifier& target, const Tensor& maps, const ObjectiveImages& images,
                          const ObjectiveStep& step, const ObjectiveOptions& options,
                          const Context& context) {
  const int64_t B = images.pixels.size(0), rounds = static_cast<int64_t>(step.references.size());
  check_shape(maps, {B, images.pixels.size(2), images.pixels.size(3)}, "maps");
  const Tensor scores = pool(step.grid, maps);  // (B, K)
  const SoftMasks soft =
      soft_top_k(scores, step.ks, step.sort, step.noise, context);  // (B, S, K), or (B, S R, K)
  Tensor masks;  // (R B, S, K), all images of round 0 first
  if (options.spread_ks) {
    std::vector<Tensor> own;
    for (int64_t r = 0; r < rounds; ++r) own.push_back(soft.masks.slice(1, r, c10::nullopt, rounds));
    masks = torch::cat(own);
  } else {
    masks = soft.masks.repeat({rounds, 1, 1});
  }

  SequenceImages sequence;
  std::vector<Tensor> references;
  for (const auto& kinds : step.references)
    references.push_back(references_of(target, images, kinds, options));
  sequence.pixels = images.pixels.repeat({rounds, 1, 1, 1});  // (R B, 3, H, W), all images of round 0 first
  sequence.reference = torch::cat(references);
  sequence.region = step.grid.region_of_pixel().view({step.grid.height, step.grid.width});
  sequence.classes = images.classes.repeat({rounds});
  const auto probs = sequence_probabilities(target, sequence, masks);  // (R B, S) each

  const Tensor deletion = deletion_term(probs.deletion), insertion = insertion_term(probs.insertion);
  const Tensor smoothness = smoothness_term(maps, options.window_px);
  ObjectiveResult result;
  result.loss = options.lambda_deletion * deletion - options.lambda_insertion * insertion +
                options.lambda_smoothness * smoothness;
  result.deletion = deletion.detach();
  result.insertion = insertion.detach();
  result.smoothness = smoothness.detach();
  result.score_range = (scores.amax(1) - scores.amin(1)).mean().item<double>();
  result.residual = soft.residual.max().item<double>();
  return result;
}

}  // namespace aha
