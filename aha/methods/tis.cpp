// tis: what a vision transformer says of parts of its patches, the others being left out for real.
//
// The channels of all blocks' outputs are patterns over the patches; k-means makes `masks` of them, and each
// keeps the patches where it is largest. A patch gets the mean class probability of the subsets it was in.
// Equal subsets are asked about once. Cost: 1 forward pass, and one of (prefix + kept) / (prefix + n) of the
// tokens for each subset.
#include "aha/methods/tis.h"

#include <algorithm>
#include <map>

#include "aha/base/error.h"
#include "aha/methods/kmeans.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/rank_error.h"

namespace aha {
namespace {

constexpr uint64_t kTisPurpose = 0x746973;
constexpr int64_t kTisChunk = 64;

// "block.0", "block.1", ...
std::vector<std::string> block_outputs(const Classifier& target) {
  std::vector<std::string> out;
  for (const auto& name : target.tap_names())
    if (name.starts_with("block.") && name.find('.', 6) == std::string::npos) out.push_back(name);
  return out;
}

struct Subsets {
  Tensor patches;             // (S, kept) int64, all different
  std::vector<double> times;  // how often each was found
};

Subsets different_ones(const Tensor& patches) {
  const int64_t kept = patches.size(1);
  std::map<std::vector<int64_t>, size_t> known;
  std::vector<Tensor> rows;
  Subsets out;
  for (int64_t k = 0; k < patches.size(0); ++k) {
    const int64_t* row = patches.data_ptr<int64_t>() + k * kept;
    const auto [place, is_new] = known.try_emplace({row, row + kept}, out.times.size());
    if (is_new) {
      rows.push_back(patches[k]);
      out.times.push_back(0);
    }
    ++out.times[place->second];
  }
  out.patches = torch::stack(rows);
  return out;
}

class Tis : public Method {
 public:
  Fields fields() override {
    Fields list;
    list.add("masks", masks_, "clusters, each of which gives one subset of the patches")
        .range(1, 100000)
        .add("ratio", ratio_, "share of the patches in a subset")
        .range(0.001, 1)
        .add("iterations", iterations_, "of k-means, at most")
        .range(0, 10000)
        .add("empty", empty_,
             "keep: an empty cluster is a subset too, as in the public code: its centroid is zero, and topk "
             "picks patches of its own choice; drop: it gives none")
        .choices({"keep", "drop"});
    add_until(list, until_);
    return list;
  }
  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    blocks_ = block_outputs(*target_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    const int64_t B = pixels.size(0);
    auto progress = context.progress("tis", B * masks_);
    Attribution out;
    std::vector<Tensor> maps;
    for (int64_t b = 0; b < B; ++b) {
      const Tensor image = pixels.narrow(0, b, 1);
      Rng rng(context.seed, stream_id({kTisPurpose, streams[b]}));
      const Tensor patterns = channel_patterns(image);
      const int64_t n = patterns.size(1);
      Tensor centroids = k_means(patterns, {masks_, iterations_}, rng, context).centroids;  // (K, n)
      if (empty_ == "drop") centroids = centroids.index({centroids.ne(0).any(1)});
      if (centroids.size(0) == 0)
        throw work_error("method tis: expected activations, found zeros in {}", target_->info().name);
      const auto subsets = different_ones(kept_patches(centroids, ratio_));
      const auto means = sampled(image, classes[b].item<int64_t>(), subsets, n, progress, context);
      const double part = static_cast<double>(target_->prefix_tokens() + subsets.patches.size(1)) /
                          static_cast<double>(target_->prefix_tokens() + n);
      out.made.push_back({Passes{1 + static_cast<double>(means.subsets()) * part, 0}});
      maps.push_back(means.map());
    }
    out.maps = upsampled(min_max(grid_from_patches(torch::stack(maps))), pixels.size(2), pixels.size(3))
                   .to(pixels.device());
    return out;
  }

 private:
  // One row for each channel of each block: (L D, n).
  Tensor channel_patterns(const Tensor& image) {
    const Tensor patterns =
        torch::cat(target_->features(image, blocks_), 1).flatten(2)[0].to(torch::kCPU).contiguous();
    if (!patterns.isfinite().all().item<bool>())
      throw work_error("method tis: expected finite activations, found others in {}", target_->info().name);
    return patterns;
  }

  PatchMeans sampled(const Tensor& image, int64_t wanted, const Subsets& subsets, int64_t n,
                     Progress& progress, const Context& context) {
    PatchMeans means(n);
    UntilSure until(until_);
    const int64_t S = subsets.patches.size(0), kept = subsets.patches.size(1);
    for (int64_t first = 0; first < S; first += kTisChunk) {
      context.cancel->check();
      const Tensor some = subsets.patches.slice(0, first, first + kTisChunk),
                   scores = torch::softmax(target_->patch_subset_logits(image, some.unsqueeze(0))[0], 1)
                                .select(1, wanted)
                                .to(torch::kCPU, torch::kFloat64)
                                .contiguous();
      for (int64_t i = 0; i < some.size(0); ++i)
        means.add(scores.data_ptr<double>()[i],
                  {subsets.patches.data_ptr<int64_t>() + (first + i) * kept, static_cast<size_t>(kept)},
                  subsets.times[first + i]);
      progress.advance(some.size(0));
      if (until.reached(means.subsets(), [&] { return means.rank_error(); })) break;
    }
    progress.advance(masks_ - means.subsets());
    return means;
  }

  std::vector<std::string> blocks_;
  int64_t masks_ = 1024;
  int iterations_ = 100;
  double ratio_ = 0.5, until_ = 0;
  std::string empty_ = "keep";
};

}  // namespace

Tensor kept_patches(const Tensor& centroids, double ratio) {
  const auto kept =
      std::max<int64_t>(1, static_cast<int64_t>(ratio * static_cast<double>(centroids.size(1))));
  return std::get<0>(std::get<1>(centroids.topk(kept, 1)).sort(1)).contiguous();
}

PatchMeans::PatchMeans(int64_t patches)
    : sums_(torch::zeros({kMaskGroups, patches}, torch::kFloat64)), weights_(torch::zeros_like(sums_)) {}

void PatchMeans::add(double score, std::span<const int64_t> patches, double times) {
  const int64_t group = subsets_++ % kMaskGroups * sums_.size(1);
  for (const int64_t patch : patches) {
    sums_.data_ptr<double>()[group + patch] += times * score;
    weights_.data_ptr<double>()[group + patch] += times;
  }
}

Tensor PatchMeans::map() const {
  const Tensor weights = weights_.sum(0);  // (n)
  return torch::where(weights > 0, sums_.sum(0) / weights, torch::zeros_like(weights)).to(torch::kFloat32);
}

double PatchMeans::rank_error() const {
  return aha::rank_error(sums_, weights_);
}

MethodRecord tis_method() {
  return {
      "tis",
      "class probability of subsets of the patches that the network's own activations choose",
      "Englebert et al. 2023, Explaining through Transformer Input Sampling (ICCV workshops)",
      "a vision transformer of a known architecture",
      has_open_blocks,
      [] { return std::unique_ptr<Method>(new Tis); },
      "The form of the authors' public code, which the paper's ViT tables most probably used: 1024 masks, "
      "half of the patches, score = probability. There a patch that no subset has makes the map NaN; here it "
      "gets 0. until=R stops before `masks` where the ranking of the patches is sure to R "
      "(aha/methods/rank_error.h); all clusters are made before."};
}

}  // namespace aha
