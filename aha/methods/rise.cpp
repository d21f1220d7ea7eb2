// rise: the mean of random masks, each weighted with the probability of the class behind it: (1 / (N p))
// sum_k p_t(x * m_k) m_k, hidden pixels being the mean color.
#include "aha/methods/rise.h"

#include "aha/attribution/target_gradient.h"
#include "aha/methods/method_records.h"

namespace aha {
namespace {

constexpr uint64_t kRisePurpose = 0x72697365;

class Rise : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("masks", masks_, "masks an image")
        .range(1, 1000000)
        .add("cells", cells_, "side of the random grid")
        .range(1, 256)
        .add("share", share_, "probability of a cell to be visible")
        .range(0.001, 1);
  }
  void prepare(const MethodContext& context) override { target_ = &context.target; }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> out;
    for (int64_t b = 0; b < pixels.size(0); ++b) {
      Rng rng(context.seed, stream_id({kRisePurpose, streams[b]}));
      out.push_back(one_map(pixels[b], classes[b].item<int64_t>(), rng, context));
    }
    return {torch::stack(out), Passes{static_cast<double>(masks_), 0}};
  }

 private:
  static constexpr int kChunk = 32;

  Tensor one_map(const Tensor& image, int64_t wanted, Rng& rng, const Context& context) {
    const auto H = image.size(1), W = image.size(2);
    const auto mean = mean_color(*target_, image);
    auto sum = torch::zeros({H, W}, image.options().dtype(torch::kFloat64));
    for (int done = 0; done < masks_; done += kChunk) {
      context.cancel->check();
      const auto masks =
          rise_masks(std::min(kChunk, masks_ - done), cells_, share_, H, W, rng).to(image.device());
      const auto visible = mean + (image - mean) * masks.unsqueeze(1);                   // (n, 3, H, W)
      const auto probs = torch::softmax(target_->logits(visible), 1).select(1, wanted);  // (n)
      sum += torch::matmul(probs, masks.flatten(1)).view({H, W});
    }
    return (sum / (masks_ * share_)).to(torch::kFloat32);
  }

  Classifier* target_ = nullptr;
  int masks_ = 4000, cells_ = 7;
  double share_ = 0.5;
};

}  // namespace

Tensor rise_masks(int count, int cells, double share, int64_t height, int64_t width, Rng& rng) {
  const int64_t cell_h = (height + cells - 1) / cells, cell_w = (width + cells - 1) / cells;
  std::vector<Tensor> out;
  for (int k = 0; k < count; ++k) {
    auto grid = torch::empty({1, 1, cells, cells});
    float* values = grid.data_ptr<float>();
    for (int i = 0; i < cells * cells; ++i) values[i] = rng.uniform() < share ? 1.f : 0.f;
    const auto y = static_cast<int64_t>(rng.below(cell_h)), x = static_cast<int64_t>(rng.below(cell_w));
    const auto large = at::upsample_bilinear2d(grid, {(cells + 1) * cell_h, (cells + 1) * cell_w}, false);
    out.push_back(large[0][0].slice(0, y, y + height).slice(1, x, x + width));
  }
  return torch::stack(out);
}

MethodRecord rise_method() {
  return {"rise",
          "random masks weighted with the class probability behind them",
          "Petsiuk et al. 2018, arXiv:1806.07421",
          "",
          fits_any,
          [] { return std::unique_ptr<Method>(new Rise); }};
}

}  // namespace aha
