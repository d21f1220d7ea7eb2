// random: i.i.d. uniform scores, one per cell. The floor of every table. Removing single random pixels is far
// more destructive than removing compact regions, so the patch-sized control (cell=16) belongs beside it.
#include "aha/base/rng.h"
#include "aha/methods/method_records.h"

namespace aha {
namespace {

constexpr uint64_t kRandomPurpose = 0x72616e64;

class Random : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("cell", cell_px_, "side of the square that shares one score, in pixels")
        .range(1, 4096);
  }
  void prepare(const MethodContext&) override {}

  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t> streams,
                        const Context& context) override {
    const auto B = pixels.size(0), H = pixels.size(2), W = pixels.size(3);
    const auto columns = (W + cell_px_ - 1) / cell_px_;
    auto out = torch::empty({B, H, W});
    for (int64_t b = 0; b < B; ++b) {
      const Rng rng(context.seed, stream_id({kRandomPurpose, streams[b]}));
      float* map = out[b].data_ptr<float>();
      for (int64_t y = 0; y < H; ++y)
        for (int64_t x = 0; x < W; ++x)
          map[y * W + x] = rng.uniform_at((y / cell_px_) * columns + x / cell_px_);
    }
    return {out.to(pixels.device()), Passes{}};
  }

 private:
  int cell_px_ = 1;
};

}  // namespace

MethodRecord random_method() {
  return {"random", "random scores, the floor",
          "",       "",
          fits_any, [] { return std::unique_ptr<Method>(new Random); }};
}

}  // namespace aha
