// rise: the mean of random masks, each weighted with the probability of the class behind it: (1 / (N p))
// sum_k p_t(x * m_k) m_k, hidden pixels being the mean color.
//
// Masks are made in chunks and go to the engine as they are: neither masked images nor all masks ever exist.
#include "aha/methods/rise.h"

#include "aha/attribution/target_gradient.h"
#include "aha/base/parallel.h"
#include "aha/methods/method_records.h"
#include "aha/methods/rank_error.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

constexpr uint64_t kRisePurpose = 0x72697365;
constexpr int64_t kRiseChunk = 64;  // 13 MB at 224 px

class Rise : public Method {
 public:
  Fields fields() override {
    Fields list;
    list.add("masks", masks_, "masks an image, at most")
        .range(1, 1000000)
        .add("cells", cells_, "side of the random grid")
        .range(1, 256)
        .add("share", share_, "probability of a cell to be visible")
        .range(0.001, 1);
    add_until(list, until_);
    return list;
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    auto progress = context.progress("rise", pixels.size(0) * masks_);
    Attribution out;
    std::vector<Tensor> maps;
    for (int64_t b = 0; b < pixels.size(0); ++b) {
      const auto sums =
          sampled(pixels.narrow(0, b, 1), classes.narrow(0, b, 1), streams[b], progress, context);
      maps.push_back(sums.map(share_));
      out.made.push_back({Passes{static_cast<double>(sums.masks()), 0}});
    }
    out.maps = torch::stack(maps).to(pixels.device());
    return out;
  }

 private:
  RiseSums sampled(const Tensor& image, const Tensor& wanted, uint64_t stream, Progress& progress,
                   const Context& context) {
    const int64_t H = image.size(2), W = image.size(3);
    Rng rng(context.seed, stream_id({kRisePurpose, stream}));
    PerturbedImages shown{.pixels = image,
                          .reference = mean_color(*target_, image).expand_as(image),
                          .region = torch::arange(H * W, torch::kInt32).view({H, W}),
                          .keep = {},
                          .classes = wanted};
    RiseSums sums(H, W);
    UntilSure until(until_);
    while (sums.masks() < masks_) {
      context.cancel->check();
      const auto n = std::min(kRiseChunk, masks_ - sums.masks());
      const auto masks = rise_masks(n, cells_, share_, H, W, rng);
      shown.keep = masks.view({1, n, H * W});
      sums.add(masks, target_->perturbed_scores(shown, false).scores[0]);
      progress.advance(n);
      if (until.reached(sums.masks(), [&] { return sums.rank_error(); })) break;
    }
    progress.advance(masks_ - sums.masks());
    return sums;
  }

  int masks_ = 4000, cells_ = 7;
  double share_ = 0.5, until_ = 0;
};

// A place on an axis between two cells: values[first] + share * (values[second] - values[first]).
struct Between {
  int32_t first, second;
  float share;
};

std::vector<Between> places_between(int64_t cells, int64_t size) {
  std::vector<Between> out(size);
  const float scale = static_cast<float>(cells) / static_cast<float>(size);
  for (int64_t i = 0; i < size; ++i) {
    const float at = std::max(0.f, (static_cast<float>(i) + 0.5f) * scale - 0.5f);
    const auto first = static_cast<int32_t>(at);
    out[i] = {first, std::min(first + 1, static_cast<int32_t>(cells) - 1), at - static_cast<float>(first)};
  }
  return out;
}

struct RandomGrid {
  std::vector<float> values;  // (cells, cells)
  int64_t y, x;               // offset
};

RandomGrid random_grid(int64_t cells, double share, int64_t cell_h, int64_t cell_w, Rng& rng) {
  RandomGrid grid;
  for (int64_t i = 0; i < cells * cells; ++i) grid.values.push_back(rng.uniform() < share ? 1.f : 0.f);
  grid.y = static_cast<int64_t>(rng.below(cell_h));
  grid.x = static_cast<int64_t>(rng.below(cell_w));
  return grid;
}

}  // namespace

Tensor rise_masks(int64_t count, int64_t cells, double share, int64_t height, int64_t width, Rng& rng) {
  const int64_t cell_h = (height + cells - 1) / cells, cell_w = (width + cells - 1) / cells;
  std::vector<RandomGrid> grids;
  for (int64_t k = 0; k < count; ++k) grids.push_back(random_grid(cells, share, cell_h, cell_w, rng));
  const auto down = places_between(cells, (cells + 1) * cell_h),
             across = places_between(cells, (cells + 1) * cell_w);
  auto masks = torch::empty({count, height, width});
  float* all = masks.data_ptr<float>();
  parallel_for(count, [&](int64_t k, int) {
    const RandomGrid& grid = grids[k];
    std::vector<float> lines(cells * width);  // the grid's rows, upsampled across
    for (int64_t row = 0; row < cells; ++row)
      for (int64_t x = 0; x < width; ++x) {
        const Between& place = across[grid.x + x];
        const float *values = &grid.values[row * cells], first = values[place.first];
        lines[row * width + x] = first + place.share * (values[place.second] - first);
      }
    for (int64_t y = 0; y < height; ++y) {
      const Between& place = down[grid.y + y];
      const float *above = &lines[place.first * width], *below = &lines[place.second * width];
      const float share_below = place.share;
      float* out = all + (k * height + y) * width;
#pragma omp simd
      for (int64_t x = 0; x < width; ++x) out[x] = above[x] + share_below * (below[x] - above[x]);
    }
  });
  return masks;
}

Tensor rise_masks_plain(int64_t count, int64_t cells, double share, int64_t height, int64_t width, Rng& rng) {
  const int64_t cell_h = (height + cells - 1) / cells, cell_w = (width + cells - 1) / cells;
  std::vector<Tensor> out;
  for (int64_t k = 0; k < count; ++k) {
    const auto grid = random_grid(cells, share, cell_h, cell_w, rng);
    const auto large = at::upsample_bilinear2d(torch::tensor(grid.values).view({1, 1, cells, cells}),
                                               {(cells + 1) * cell_h, (cells + 1) * cell_w}, false);
    out.push_back(large[0][0].slice(0, grid.y, grid.y + height).slice(1, grid.x, grid.x + width));
  }
  return torch::stack(out);
}

RiseSums::RiseSums(int64_t height, int64_t width)
    : height_(height), width_(width), sums_(torch::zeros({kMaskGroups, height * width}, torch::kFloat64)) {}

void RiseSums::add(const Tensor& masks, const Tensor& scores) {
  const int64_t n = masks.size(0), pixels = height_ * width_;
  constexpr int64_t kBlock = 1024;  // pixels: 4 kB of sums stay in the first cache
  const Tensor m = masks.contiguous(), s = scores.contiguous();
  const float *mask = m.data_ptr<float>(), *score = s.data_ptr<float>();
  double* sums = sums_.data_ptr<double>();
  parallel_for((pixels + kBlock - 1) / kBlock, [&](int64_t block, int) {
    const int64_t first = block * kBlock, size = std::min(kBlock, pixels - first);
    float part[kBlock];
    for (int64_t g = 0; g < kMaskGroups; ++g) {
      std::fill_n(part, size, 0.f);
      for (int64_t k = (g + kMaskGroups - masks_ % kMaskGroups) % kMaskGroups; k < n; k += kMaskGroups) {
        const float weight = score[k], *from = mask + k * pixels + first;
#pragma omp simd
        for (int64_t i = 0; i < size; ++i) part[i] += weight * from[i];
      }
      double* to = sums + g * pixels + first;
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) to[i] += part[i];
    }
  });
  masks_ += n;
}

Tensor RiseSums::map(double share) const {
  const OneThread one_thread;
  return (sums_.sum(0) / (static_cast<double>(masks_) * share)).to(torch::kFloat32).view({height_, width_});
}

double RiseSums::rank_error() const {
  const OneThread one_thread;
  constexpr int64_t kSide = 28;
  const auto cells =
      at::adaptive_avg_pool2d(sums_.view({kMaskGroups, 1, height_, width_}),
                              {std::min(kSide, height_), std::min(kSide, width_)});  // (G, 1, h, w)
  return aha::rank_error(cells.flatten(1));
}

MethodRecord rise_method() {
  return {
      "rise",
      "random masks weighted with the class probability behind them",
      "Petsiuk et al. 2018, arXiv:1806.07421",
      "",
      fits_any,
      [] { return std::unique_ptr<Method>(new Rise); },
      "Not in the paper's tables. Masks, grid and share are those of the RISE paper for VGG (4000, 7, 0.5); "
      "hidden pixels show the mean color. Its public code mirrors masks at the border of the image, here "
      "the last cell is repeated: only the outer half cell differs. until=R stops before `masks` where the "
      "ranking of 28 x 28 cells is sure to R (aha/methods/rank_error.h)."};
}

}  // namespace aha
