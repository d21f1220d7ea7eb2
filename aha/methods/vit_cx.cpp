// vit-cx: masks from the target's own features, each scored by what it keeps alive (Xie et al. 2023).
//
//   masks    the features before the last block's attention (behind norm1), one map per channel, enlarged
//            and scaled to 0..1; clusters of maps nearer than `threshold` (1 - cosine, complete linkage)
//            become one mask
//   scores   c_k = p(x m_k + e (1 - m_k)) - p(x + e (1 - m_k)) + p(x), e noise of the normalized image
//   map      (1 / N) sum_k c_k m_k / sum_j m_j, scaled to 0..1
//
// Cost: 2 N + 2 forwards for N clusters (20 to 31 on ViT-Tiny), N + 2 without noise.
#include "aha/methods/vit_cx.h"

#include <cmath>
#include <numeric>

#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/region_search.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

constexpr uint64_t kVitCxPurpose = 0x76697463;
constexpr int64_t kVitCxAtOnce = 16;  // masks; 10 MB of noise at 224 pixels

// count normal numbers; four of the generator's give four of these.
void fill_normal(float* to, int64_t count, const Rng& rng) {
  for (int64_t i = 0; i < count; i += 4) {
    const auto bits = rng.block(static_cast<uint64_t>(i / 4));
    float four[4];
    for (int pair = 0; pair < 4; pair += 2) {
      const float radius = std::sqrt(-2 * std::log(Rng::unit_from_bits(bits[pair]))),
                  angle = 6.2831853f * Rng::unit_from_bits(bits[pair + 1]);
      four[pair] = radius * std::cos(angle);
      four[pair + 1] = radius * std::sin(angle);
    }
    std::copy_n(four, std::min<int64_t>(4, count - i), to + i);
  }
}

// (pixels, g): bilinear, half-pixel centers, as upsampled() of patch_maps.h.
Tensor enlarging_matrix(int64_t g, int64_t pixels) {
  const Tensor lines = torch::eye(g, torch::kFloat64).unsqueeze(2);  // (g, g, 1): one line each
  return upsampled(lines, pixels, 1).squeeze(2).t().contiguous();
}

class VitCx : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("threshold", threshold_, "feature maps nearer than this (1 - cosine) share a mask")
        .range(0, 2)
        .add("noise", noise_,
             "standard deviation of the noise in the normalized image; 0 = none, hidden is mean gray")
        .range(0, 100)
        .add("draws", draws_, "draws of the noise to average the scores over")
        .range(1, 10000);
  }
  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    tap_ = fmt::format("block.{}.norm1", attention_taps(*target_).size() - 1);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    const OneThread one_thread;  // clusters must not depend on a last bit
    Attribution out;
    std::vector<Tensor> maps;
    for (int64_t b = 0; b < pixels.size(0); ++b) {
      context.cancel->check();
      const Tensor one = pixels.narrow(0, b, 1);
      const int64_t H = one.size(2), W = one.size(3), wanted = classes[b].item<int64_t>();
      const Tensor features = target_->features(one, {tap_})[0][0].cpu();  // (D, g, g)
      const Tensor single = unit_masks(features, H, W);
      if (single.size(0) == 0) throw work_error("vit-cx: every feature map of this image is constant");
      const Tensor masks =
          cluster_masks(single, complete_linkage(mask_distances(single, H, W), threshold_), H, W);
      const double clean_p = class_probabilities(*target_, one, wanted).item<double>();
      Passes passes{2, 0};
      Tensor scores = torch::zeros({masks.size(0)}, torch::kFloat64);
      const int draws = noise_ > 0 ? draws_ : 1;
      for (int draw = 0; draw < draws; ++draw)
        scores += causal_scores(one[0], masks, wanted, clean_p,
                                stream_id({kVitCxPurpose, streams[b], static_cast<uint64_t>(draw)}), passes,
                                context);
      maps.push_back(weighed_masks(masks, scores / draws, H, W).to(pixels.device()));
      out.made.push_back({passes});
    }
    out.maps = min_max(torch::stack(maps));
    return out;
  }

 private:
  // image (3, H, W), masks (N, g, g) -> (N) float64
  Tensor causal_scores(const Tensor& image, const Tensor& masks, int64_t wanted, double clean_p,
                       uint64_t stream, Passes& passes, const Context& context) {
    const int64_t H = image.size(1), W = image.size(2);
    const auto& mean = target_->info().input.mean;
    const Tensor gray =
        torch::tensor({mean[0], mean[1], mean[2]}, torch::kFloat64).to(image.options()).view({3, 1, 1});
    std::vector<Tensor> out;
    for (int64_t first = 0; first < masks.size(0); first += kVitCxAtOnce) {
      context.cancel->check();
      const int64_t n = std::min(kVitCxAtOnce, masks.size(0) - first);
      const Tensor shown =
          upsampled(masks.narrow(0, first, n), H, W).unsqueeze(1).to(image.device());  // (n, 1, H, W)
      const Tensor hidden = 1 - shown;
      Tensor noise = torch::zeros({n, 3, H, W});
      if (noise_ > 0) {
        parallel_for(n, [&](int64_t k, int) {
          const Rng rng(context.seed, stream_id({stream, static_cast<uint64_t>(first + k)}));
          fill_normal(noise.data_ptr<float>() + k * 3 * H * W, 3 * H * W, rng);
        });
        noise = noise.to(image.device()) * (noise_ * channel_std(*target_, image));  // in pixels
      } else {
        noise = noise.to(image.device());
      }
      const auto ask = [&](const Tensor& images) {
        passes.forwards += static_cast<double>(n);
        return class_probabilities(*target_, images, wanted).to(torch::kFloat64);
      };
      Tensor scores = ask(image * shown + (gray + noise) * hidden);  // (n)
      if (noise_ > 0) scores = scores - ask(image + noise * hidden) + clean_p;
      out.push_back(scores);
    }
    return torch::cat(out);
  }

  std::string tap_;
  double threshold_ = 0.1, noise_ = 0.1;
  int draws_ = 1;
};

}  // namespace

Tensor unit_masks(const Tensor& grids, int64_t height, int64_t width) {
  constexpr int64_t kAtOnce = 64;
  // A constant is found before enlarging, whose rounding would give it a range.
  const Tensor kept = torch::nonzero(grids.amax({1, 2}) > grids.amin({1, 2})).squeeze(1);
  const Tensor some = grids.index_select(0, kept);
  std::vector<Tensor> out;
  for (const Tensor& part : some.split(kAtOnce)) {
    if (part.size(0) == 0) break;
    const Tensor large = upsampled(part, height, width), low = large.amin({1, 2}, true);
    out.push_back((part - low) / (large.amax({1, 2}, true) - low));
  }
  return out.empty() ? some : torch::cat(out);
}

Tensor mask_distances(const Tensor& masks, int64_t height, int64_t width) {
  const int64_t h = masks.size(1), w = masks.size(2);
  const Tensor down = enlarging_matrix(h, height), across = enlarging_matrix(w, width);
  const Tensor m = masks.to(torch::kFloat64);
  const Tensor enlarged = down.t().matmul(down).matmul(m).matmul(across.t().matmul(across));  // U^T U m
  const Tensor products = m.flatten(1).matmul(enlarged.flatten(1).t());                       // (N, N)
  const Tensor length = products.diagonal().clamp_min(0).sqrt();
  const Tensor cosine = products / (length.unsqueeze(1) * length);
  return 1 - torch::where(cosine.isfinite(), cosine, torch::zeros_like(cosine));
}

std::vector<int64_t> complete_linkage(const Tensor& distances, double threshold) {
  const int64_t N = distances.size(0);
  check_shape(distances, {N, N}, "distances");
  Tensor table = distances.to(torch::kFloat64).clone().contiguous();
  double* d = table.data_ptr<double>();
  std::vector<int64_t> of(N), active(N), chain;  // `of`: the member that stands for a cluster
  std::iota(of.begin(), of.end(), int64_t{0});
  active = of;
  const auto leave = [&](int64_t cluster) { active.erase(std::find(active.begin(), active.end(), cluster)); };
  while (!active.empty()) {
    if (chain.empty()) chain.push_back(active.front());
    const int64_t a = chain.back(), before = chain.size() > 1 ? chain[chain.size() - 2] : -1;
    int64_t nearest = before;
    for (const int64_t b : active)
      if (b != a && (nearest < 0 || d[a * N + b] < d[a * N + nearest])) nearest = b;
    if (nearest < 0 || !(d[a * N + nearest] < threshold)) {
      // Merging others only moves them away: this cluster is done.
      leave(a);
      chain.pop_back();
    } else if (nearest == before) {
      for (const int64_t b : active) d[a * N + b] = d[b * N + a] = std::max(d[a * N + b], d[before * N + b]);
      for (int64_t& member : of)
        if (member == before) member = a;
      leave(before);
      chain.resize(chain.size() - 2);
    } else {
      chain.push_back(nearest);
    }
  }
  std::vector<int64_t> number(N, -1), out;
  int64_t next = 0;
  for (const int64_t cluster : of) {
    if (number[cluster] < 0) number[cluster] = next++;
    out.push_back(number[cluster]);
  }
  return out;
}

Tensor cluster_masks(const Tensor& masks, const std::vector<int64_t>& cluster, int64_t height,
                     int64_t width) {
  const int64_t count = *std::max_element(cluster.begin(), cluster.end()) + 1;
  const Tensor sums = torch::zeros({count, masks.size(1), masks.size(2)}, masks.options());
  for (size_t i = 0; i < cluster.size(); ++i) sums[cluster[i]] += masks[static_cast<int64_t>(i)];
  return unit_masks(sums, height, width);
}

Tensor weighed_masks(const Tensor& masks, const Tensor& scores, int64_t height, int64_t width) {
  const Tensor weighed = (masks.to(torch::kFloat64) * scores.to(torch::kFloat64).view({-1, 1, 1})).sum(0),
               all = masks.to(torch::kFloat64).sum(0);
  const Tensor large = upsampled(torch::stack({weighed, all}), height, width);  // (2, H, W)
  const Tensor map = large[0] / large[1] / static_cast<double>(masks.size(0));
  return torch::where(map.isfinite(), map, torch::zeros_like(map)).to(torch::kFloat32);
}

MethodRecord vit_cx_method() {
  return {"vit-cx",
          "clustered feature maps as masks, each weighted by what it keeps of the class",
          "Xie et al. 2023, arXiv:2211.03064",
          "a vision transformer of a known architecture",
          has_open_blocks,
          [] { return std::unique_ptr<Method>(new VitCx); },
          "The paper's tables most probably have these defaults. The noise decides much of the map (the "
          "public code's "
          "maps of two seeds correlate from 0.35 to 0.996 on ViT-Tiny): noise=0 or more draws make it "
          "steady. The "
          "class given is explained, not the most probable one."};
}

}  // namespace aha
