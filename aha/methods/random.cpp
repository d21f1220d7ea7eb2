// random: i.i.d. uniform scores, one per cell. The floor of every table. Removing single random pixels is far
// more destructive than removing compact regions, so the patch-sized control (cell=16) belongs beside it.
// blurred-random: the same scores under a Gaussian, as smooth as the maps it stands beside.
#include "aha/base/rng.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

constexpr uint64_t kRandomPurpose = 0x72616e64;

// (B, H, W), one number for each cell
Tensor random_scores(const Tensor& pixels, int cell_px, std::span<const uint64_t> streams, uint64_t seed) {
  const auto B = pixels.size(0), H = pixels.size(2), W = pixels.size(3);
  const auto columns = (W + cell_px - 1) / cell_px;
  auto out = torch::empty({B, H, W});
  for (int64_t b = 0; b < B; ++b) {
    const Rng rng(seed, stream_id({kRandomPurpose, streams[b]}));
    float* map = out[b].data_ptr<float>();
    for (int64_t y = 0; y < H; ++y)
      for (int64_t x = 0; x < W; ++x) map[y * W + x] = rng.uniform_at((y / cell_px) * columns + x / cell_px);
  }
  return out;
}

class Random : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("cell", cell_px_, "side of the square that shares one score, in pixels")
        .range(1, 4096);
  }

  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t> streams,
                        const Context& context) override {
    return {random_scores(pixels, cell_px_, streams, context.seed).to(pixels.device()), Passes{}};
  }

 private:
  int cell_px_ = 1;
};

class BlurredRandom : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("sigma", sigma_, "standard deviation of the Gaussian as a share of the image's height")
        .range(0.001, 1);
  }

  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t> streams,
                        const Context& context) override {
    const double sigma_px = sigma_ * static_cast<double>(pixels.size(2));
    return {blurred_maps(random_scores(pixels, 1, streams, context.seed), sigma_px).to(pixels.device()),
            Passes{}};
  }

 private:
  double sigma_ = 0.04;  // 9 pixels of 224
};

}  // namespace

MethodRecord random_method() {
  return {"random", "random scores, the floor",
          "",       "",
          fits_any, [] { return std::unique_ptr<Method>(new Random); },
          "",       false};
}

MethodRecord blurred_random_method() {
  return {"blurred-random", "random scores, smoothed: the floor of smooth maps",       "", "",
          fits_any,         [] { return std::unique_ptr<Method>(new BlurredRandom); }, "", false};
}

}  // namespace aha
