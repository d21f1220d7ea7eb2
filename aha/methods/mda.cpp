// mda: a map searched for on the image itself by the metrics that evaluate it (Walker et al. 2025).
//
//   insertion   regions are written into a blurred image: of the q candidates with the highest prior always
//               the one that raises the probability most, until tau of the way to the clean image's
//               probability is made
//   deletion    the others are written into a gray image: of the q with the lowest prior the one that raises
//               it least; those of the insertion come last, in reverse. Read backwards this is the order.
//   magnitudes  the probabilities on that way, made convex, give each region its value; the insertion and
//               deletion curves of this map correct the values once
//
// Regions are the target's patches. Cost at 14 x 14: up to 5110 forwards for the search, 446 for the curves,
// 37 at most for the blur, and the prior.
#include <cmath>
#include <numeric>
#include <optional>

#include "aha/base/error.h"
#include "aha/methods/catalog.h"
#include "aha/methods/convex_projection.h"
#include "aha/methods/mda.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/region_search.h"
#include "aha/metrics/mas.h"
#include "aha/perturb/adaptive_blur.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

constexpr double kMdaTau = 0.9, kMdaKappa = 0.005;

double share_of_way(double p, double from, double to) {
  const double range = std::abs(to - from);
  return range > 0 ? std::clamp((p - from) / range, 0.0, 1.0) : 0;
}

// Values at n + 1 equally spaced places of a curve, linear in between.
std::vector<double> resampled(const std::vector<double>& curve, int64_t n) {
  std::vector<double> out;
  for (int64_t i = 0; i <= n; ++i) {
    const double at = static_cast<double>(i) * static_cast<double>(curve.size() - 1) / static_cast<double>(n);
    const auto left = std::min(static_cast<size_t>(at), curve.size() - 2);
    out.push_back(curve[left] + (at - static_cast<double>(left)) * (curve[left + 1] - curve[left]));
  }
  return out;
}

struct Written {
  std::vector<int64_t> order;
  std::vector<double> probabilities;  // after each
};

class Mda : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("gamma", gamma_, "0 = sparse map, 1 = dense map, between them a mixture")
        .range(0, 1)
        .add("prior", prior_name_,
             "method that proposes candidates; auto = bi-att, or chefer, gradcam, gradient where it does not "
             "fit")
        .add("window", window_, "candidates a step; 0 = min(2 floor(sqrt(n)), 28) of n regions")
        .range(0, 100000)
        .add("smoothed", smoothed_, "bilinear between regions instead of constant on each");
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    prior_ = make_method(prior_name_ == "auto" ? fitting_prior(context) : prior_name_, context);
    side_ = region_side(*target_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override;

 private:
  class Search;

  Attribution prior_map(const Tensor& one, const Tensor& of_class, std::span<const uint64_t> stream,
                        const Context& context) {
    const torch::AutoGradMode with_grad(true);
    return prior_->attribute(one, of_class, stream, context);
  }

  static std::string fitting_prior(const MethodContext& context) {
    for (const std::string name : {"bi-att", "chefer", "gradcam", "gradient"})
      for (const auto& record : method_catalog())
        if (record.name == name && record.fits(context)) return record.name;
    throw input_error("method mda: expected prior=METHOD, as none of its own fits {}",
                      context.target.info().name);
  }

  std::unique_ptr<Method> prior_;
  std::string prior_name_ = "auto";
  double gamma_ = 0;
  int window_ = 0;
  bool smoothed_ = false;
  int64_t side_ = 0;
};

// On one image.
class Mda::Search {
 public:
  Search(const Mda& options, const Tensor& image, int64_t wanted, const Context& context, Progress& progress)
      : options_(options),
        image_(image),
        wanted_(wanted),
        context_(context),
        progress_(progress),
        grid_(make_grid(image.size(1), image.size(2), options.side_)),
        blur_(adaptive_blur(image, options.target_->info().input.mean,
                            [&](const Tensor& blurred) {
                              context.cancel->check();
                              return probability(blurred);
                            })),
        gray_(gray_like(image)),
        on_blur_(*options.target_, image, {blur_.image}, grid_, wanted),
        on_gray_(*options.target_, image, {gray_}, grid_, wanted) {}

  Tensor map(const Tensor& prior) {  // (1, H, W) -> (H, W)
    clean_p_ = probability(image_);
    gray_p_ = probability(gray_);
    const auto by_prior = by_falling_prior(pool(grid_, prior)[0]);
    const Written inserted = insertion(by_prior);
    const Written deleted = worst_insertion(by_prior, inserted.order);
    const std::vector<int64_t> order(deleted.order.rbegin(), deleted.order.rend());  // most important first
    std::vector<double> values = mda_values(convex_projection(response(deleted)), region_px());
    if (std::accumulate(values.begin(), values.end(), 0.0) > 0) {
      values = mda_values(convex_projection(corrected(painted(order, values))), region_px());
      values = mda_mixture(values, options_.gamma_, kMdaKappa);
    } else {  // less probable on the image than on gray: no magnitudes, the order alone
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>(values.size() - 1 - i) / static_cast<double>(values.size());
    }
    Tensor map = painted(order, values);
    if (!options_.smoothed_) return map;
    return upsampled(pool(grid_, map.unsqueeze(0)).view({1, grid_.rows, grid_.columns}), image_.size(1),
                     image_.size(2))[0];
  }

  int64_t forwards() const { return forwards_ + blur_.asked + on_blur_.forwards() + on_gray_.forwards(); }

 private:
  Tensor gray_like(const Tensor& image) const {
    const auto& mean = options_.target_->info().input.mean;
    return torch::tensor({mean[0], mean[1], mean[2]}, torch::kFloat64)
        .to(image.options())
        .view({3, 1, 1})
        .expand_as(image)
        .contiguous();
  }

  // Of the adaptive blur's too, which counts its own.
  double probability(const Tensor& image) const {
    return class_probabilities(*options_.target_, image.unsqueeze(0), wanted_).item<double>();
  }

  double region_px() const {
    return static_cast<double>(grid_.height * grid_.width) / static_cast<double>(grid_.K());
  }

  int64_t window() const {
    const auto root = static_cast<int64_t>(std::floor(std::sqrt(static_cast<double>(grid_.K()))));
    return options_.window_ > 0 ? options_.window_ : std::min<int64_t>(2 * root, 28);
  }

  static std::vector<int64_t> by_falling_prior(const Tensor& scores) {
    const Tensor order = std::get<1>(scores.cpu().sort(/*stable=*/true, 0, /*descending=*/true)).contiguous();
    return {order.data_ptr<int64_t>(), order.data_ptr<int64_t>() + order.numel()};
  }

  // Regions are written into the reference, each time the best of the first `window` that wait. sign: 1 = the
  // highest probability is best, -1 = the lowest.
  Written written(HiddenRegions& canvas, std::vector<int64_t> waiting, double sign, double stop_at) {
    Written out;
    const Tensor shown = torch::zeros({canvas.K()});
    while (!waiting.empty()) {
      const auto q = std::min<int64_t>(window(), static_cast<int64_t>(waiting.size()));
      Tensor candidates = shown.repeat({q, 1});
      for (int64_t c = 0; c < q; ++c) candidates[c][waiting[c]] = 1;
      const Tensor p = canvas.probabilities(candidates, context_)[0];  // (q)
      int64_t best = 0;
      for (int64_t c = 1; c < q; ++c)
        if (sign * p[c].item<double>() > sign * p[best].item<double>()) best = c;
      shown[waiting[best]] = 1;
      out.order.push_back(waiting[best]);
      out.probabilities.push_back(p[best].item<double>());
      waiting.erase(waiting.begin() + best);
      progress_.advance();
      if (out.probabilities.back() >= stop_at) break;
    }
    return out;
  }

  Written insertion(const std::vector<int64_t>& by_prior) {
    return written(on_blur_, by_prior, 1,
                   blur_.probability + kMdaTau * std::abs(clean_p_ - blur_.probability));
  }

  Written worst_insertion(const std::vector<int64_t>& by_prior, const std::vector<int64_t>& best) {
    std::vector<int64_t> waiting;
    for (auto region = by_prior.rbegin(); region != by_prior.rend(); ++region)
      if (std::find(best.begin(), best.end(), *region) == best.end()) waiting.push_back(*region);
    Written out = written(on_gray_, waiting, -1, std::numeric_limits<double>::infinity());
    const auto m = static_cast<int64_t>(best.size());
    Tensor shown = torch::ones({m, grid_.K()});
    for (int64_t i = 0; i < m; ++i) {  // best[m - 1], ..., best[0]
      out.order.push_back(best[m - 1 - i]);
      for (int64_t later = 0; later < m - 1 - i; ++later) shown[i][best[later]] = 0;
    }
    const Tensor p = on_gray_.probabilities(shown, context_)[0];
    for (int64_t i = 0; i < m; ++i) out.probabilities.push_back(p[i].item<double>());
    return out;
  }

  // 0, 1, ... n regions deleted, from 1 down to 0; as published, shifted by one step (both first are the
  // clean image).
  std::vector<double> response(const Written& deleted) const {
    std::vector<double> r = {share_of_way(clean_p_, gray_p_, clean_p_)};
    for (size_t i = deleted.probabilities.size(); i-- > 0;)
      r.push_back(std::min(r.back(), share_of_way(deleted.probabilities[i], gray_p_, clean_p_)));
    return r;
  }

  // (1 - insertion + deletion) / 2 of the map, region by region.
  std::vector<double> corrected(const Tensor& map) {
    const auto curve = [&](MasTest test, const Tensor& reference, double reference_p) {
      const auto input = mas_input(*options_.target_, test,
                                   {image_, reference, wanted_, clean_p_, reference_p}, map, context_);
      forwards_ += static_cast<int64_t>(input.mass.size()) - 1;
      return resampled(mas_curve(test, input).response, grid_.K());
    };
    const auto in = curve(MasTest::kInsertion, blur_.image, blur_.probability),
               out = curve(MasTest::kDeletion, gray_, gray_p_);
    std::vector<double> c;
    for (size_t i = 0; i < in.size(); ++i) c.push_back((1 - in[i] + out[i]) / 2);
    return c;
  }

  Tensor painted(const std::vector<int64_t>& order, const std::vector<double>& values) const {
    Tensor by_region = torch::empty({1, grid_.K()}, torch::kFloat32);
    for (size_t i = 0; i < order.size(); ++i)
      by_region.data_ptr<float>()[order[i]] = static_cast<float>(values[i]);
    return upsample(grid_, by_region)[0].to(image_.device());  // (H, W)
  }

  const Mda& options_;
  const Tensor image_;  // (3, H, W)
  const int64_t wanted_;
  const Context& context_;
  Progress& progress_;
  const RegionGrid grid_;
  const AdaptiveBlur blur_;
  const Tensor gray_;  // zero in the normalized image
  HiddenRegions on_blur_, on_gray_;
  double clean_p_ = 0, gray_p_ = 0;
  int64_t forwards_ = 2;  // clean and gray
};

Attribution Mda::attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                           const Context& context) {
  const torch::NoGradGuard no_grad;
  const OneThread one_thread;  // the search turns a last bit into another map
  const int64_t B = pixels.size(0), n = make_grid(pixels.size(2), pixels.size(3), side_).K();
  auto progress = context.progress("mda", B * n);
  Attribution out;
  std::vector<Tensor> maps;
  for (int64_t b = 0; b < B; ++b) {
    const Tensor one = pixels.narrow(0, b, 1), of_class = classes.narrow(0, b, 1);
    const Attribution prior = prior_map(one, of_class, streams.subspan(b, 1), context);
    Search search(*this, one[0], of_class.item<int64_t>(), context, progress);
    maps.push_back(search.map(prior.maps));
    Passes passes = prior.made[0].passes;
    passes.forwards += static_cast<double>(search.forwards());
    out.made.push_back({passes});
  }
  out.maps = torch::stack(maps);
  return out;
}

}  // namespace

std::vector<double> mda_values(const std::vector<double>& response, double region_px) {
  const size_t n = response.size() - 1;
  std::vector<double> values;
  for (size_t i = 1; i <= n; ++i) {
    const double fall = response[i - 1] - response[i];
    values.push_back(fall / region_px + fall * static_cast<double>(n - i) / static_cast<double>(n));
  }
  return values;
}

std::vector<double> mda_mixture(const std::vector<double>& sparse, double gamma, double kappa) {
  const auto n = static_cast<double>(sparse.size());
  std::vector<double> dense = sparse;
  for (size_t i = 0; i < dense.size(); ++i)
    if (sparse[i] >= kappa) dense[i] = (n - 1 - static_cast<double>(i)) / n;
  const double highest = *std::max_element(sparse.begin(), sparse.end()),
               of_dense = *std::max_element(dense.begin(), dense.end());
  std::vector<double> out;
  for (size_t i = 0; i < dense.size(); ++i)
    out.push_back((1 - gamma) * sparse[i] + gamma * (of_dense > 0 ? dense[i] * highest / of_dense : 0));
  return out;
}

MethodRecord mda_method() {
  return {
      "mda",
      "greedy search for the order that inserts and deletes best, magnitudes from the responses; slow",
      "Walker et al. 2025 (Metric-Driven Attributions for Vision Transformers)",
      "",
      fits_any,
      [] { return std::unique_ptr<Method>(new Mda); },
      "The paper's tables most probably have gamma=0, unsmoothed, with bi-att as the prior. Regions are the "
      "true "
      "patches; the public code's SLIC segments lie one pixel off them. The class given is explained, not "
      "the "
      "most probable one. Where the class is no more probable on the image than on gray there are no "
      "magnitudes and the map is the order alone (the public code drops such images). Other networks than "
      "transformers: 14 x 14 regions (8 x 8 up to 64 pixels), our extension."};
}

}  // namespace aha
