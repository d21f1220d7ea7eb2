// greedy: how good an order of regions can be, searched for on the image by the very metric; a ceiling, not
// an explanation one would wait for.
//
// An order is good where few of its first regions suffice to lose the class (deletion) and to find it
// (insertion). With P_k the first k regions, its value is the sum over k of
//
//   v(P_k) = mean over references of  f(reference with P_k of the image) - f(image with P_k of the reference)
//
// Both ends of the order are built in turn: the region that, put next in front, makes v highest, then the one
// that, put before those at the back, leaves v highest. The front alone should see little of insertion (a
// few regions in an empty image say nothing), the back alone little of deletion; which is best was not
// measured.
//
// A step asks about every region that is left (window=0) or, lazily, about the `window` ones whose gains were
// highest when last asked: gains change little from step to step. Cost: 2 R forwards per candidate, R
// references.
#include <algorithm>
#include <numeric>

#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/region_search.h"
#include "aha/perturb/reference.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

class Greedy : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("grid", grid_, "regions a side; 0 = the patch grid, else 14, or 8 up to 64 pixels")
        .range(0, 512)
        .add("window", window_,
             "candidates a step, those with the highest gains so far; 0 = all that are left, exact")
        .range(0, 100000)
        .add("ends", ends_, "which ends of the order are built")
        .choices({"both", "front", "back"})
        .add("references", references_, "what hidden regions show")
        .choices({"black", "mean", "blur"});
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    if (references_.empty()) throw input_error("method greedy: expected one reference or more, found none");
    if (grid_ == 0) grid_ = static_cast<int>(region_side(*target_));
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    const OneThread one_thread;
    const int64_t B = pixels.size(0);
    const RegionGrid grid = make_grid(pixels.size(2), pixels.size(3), grid_);
    const ReferenceOptions look = with_mean_color({}, target_->info().mean_color);
    auto progress = context.progress("greedy", B * grid.K());
    Attribution out;
    std::vector<Tensor> values;
    for (int64_t b = 0; b < B; ++b) {
      std::vector<Tensor> references;
      for (const Tensor& one : all_references(pixels.narrow(0, b, 1), look, references_))
        references.push_back(one[0]);
      HiddenRegions hidden(*target_, pixels[b], references, grid, classes[b].item<int64_t>());
      values.push_back(values_of(order(hidden, context, progress)));
      out.made.push_back({Passes{static_cast<double>(hidden.forwards()), 0}});
    }
    out.maps = upsample(grid, torch::stack(values)).to(pixels.device());
    return out;
  }

 private:
  // Building one end of the order.
  struct End {
    Tensor first;              // (K) 1 = among the first regions of the order, as far as this end knows
    float put;                 // what a region's entry becomes: 1 in front, 0 at the back
    double value;              // v of `first`
    std::vector<double> gain;  // (K) of each region, when last asked
  };

  // v of each row of first (S, K)
  static std::vector<double> values_at(HiddenRegions& hidden, const Tensor& first, const Context& context) {
    const Tensor p =
        hidden.probabilities(torch::cat({first, 1 - first}), context).to(torch::kFloat64);  // (R, 2 S)
    const int64_t S = first.size(0);
    const Tensor v = (p.narrow(1, 0, S) - p.narrow(1, S, S)).mean(0).contiguous();
    return {v.data_ptr<double>(), v.data_ptr<double>() + S};
  }

  // The best of the candidates; `end` then has it.
  static int64_t take(End& end, const std::vector<int64_t>& candidates, HiddenRegions& hidden,
                      const Context& context) {
    const Tensor rows = end.first.repeat({static_cast<int64_t>(candidates.size()), 1});
    for (size_t c = 0; c < candidates.size(); ++c) rows[static_cast<int64_t>(c)][candidates[c]] = end.put;
    const auto v = values_at(hidden, rows, context);
    for (size_t c = 0; c < candidates.size(); ++c) end.gain[candidates[c]] = v[c] - end.value;
    const size_t best = std::max_element(v.begin(), v.end()) - v.begin();
    end.first[candidates[best]] = end.put;
    end.value = v[best];
    return candidates[best];
  }

  std::vector<int64_t> candidates_of(const End& end, const std::vector<int64_t>& left) const {
    std::vector<int64_t> out = left;
    const bool asked_before =
        !end.gain.empty() && end.gain[left[0]] < std::numeric_limits<double>::infinity();
    if (window_ == 0 || !asked_before || static_cast<int64_t>(left.size()) <= window_) return out;
    std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) { return end.gain[a] > end.gain[b]; });
    out.resize(window_);
    return out;
  }

  // Regions, most important first.
  std::vector<int64_t> order(HiddenRegions& hidden, const Context& context, Progress& progress) const {
    const int64_t K = hidden.K();
    const double none = values_at(hidden, torch::zeros({1, K}), context)[0];
    const std::vector<double> unknown(K, std::numeric_limits<double>::infinity());
    End front{torch::zeros({K}), 1, none, unknown}, back{torch::ones({K}), 0, -none, unknown};
    std::vector<int64_t> left(K), first, last;
    std::iota(left.begin(), left.end(), int64_t{0});
    for (bool at_front = ends_ != "back"; !left.empty(); at_front = ends_ == "both" ? !at_front : at_front) {
      End& end = at_front ? front : back;
      const int64_t taken = left.size() == 1 ? left[0] : take(end, candidates_of(end, left), hidden, context);
      (at_front ? first : last).push_back(taken);
      left.erase(std::find(left.begin(), left.end(), taken));
      progress.advance();
    }
    first.insert(first.end(), last.rbegin(), last.rend());
    return first;
  }

  static Tensor values_of(const std::vector<int64_t>& order) {
    const auto K = static_cast<int64_t>(order.size());
    Tensor values = torch::empty({K});
    for (int64_t i = 0; i < K; ++i)
      values.data_ptr<float>()[order[i]] = static_cast<float>(K - i) / static_cast<float>(K);
    return values;
  }

  int grid_ = 0, window_ = 16;
  std::string ends_ = "both";
  std::vector<std::string> references_ = {"black", "mean", "blur"};
};

}  // namespace

MethodRecord greedy_method() {
  return {"greedy",
          "greedy search for the order that deletes and inserts best on this image; a ceiling, very slow",
          "",
          "",
          fits_any,
          [] { return std::unique_ptr<Method>(new Greedy); },
          "No method of the paper's tables. The default window is lazy: a step asks only about the regions "
          "with the "
          "highest gains so far. window=0 asks about all and is the exact greedy order."};
}

}  // namespace aha
