// occlusion: how far the class score falls while a square window is hidden; a pixel gets the mean over the
// windows that cover it.
//
// Windows begin at multiples of the stride, and the last one of a line is cut by the border, so that every
// pixel is covered. They are unions of square cells (of the largest side that divides window and stride): a
// mask has one number for each cell. Cost: 1 + number of windows forward passes, 730 at 224 px.
#include <numeric>

#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/perturb/reference.h"

namespace aha {
namespace {

constexpr int64_t kOcclusionChunk = 128;

class Occlusion : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("window", window_px_, "side of the hidden square in pixels; 0 = 1/14 of the input")
        .range(0, 16384)
        .add("stride", stride_px_, "from one window to the next in pixels; 0 = half a window")
        .range(0, 16384)
        .add("reference", reference_, "what a hidden pixel shows")
        .choices({"mean", "black", "blur"})
        .add("score", score_, "what falls: the class's probability or its logit")
        .choices({"probability", "logit"});
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    const int size = target_->info().input.size;
    if (window_px_ == 0) window_px_ = std::max(1, (size + 7) / 14);
    if (stride_px_ == 0) stride_px_ = std::max(1, window_px_ / 2);
    if (window_px_ > size)
      throw input_error("method occlusion: expected a window of at most {} pixels, found {}", size,
                        window_px_);
    if (stride_px_ > window_px_)
      throw input_error("method occlusion: expected a stride of at most the window ({} pixels), found {}",
                        window_px_, stride_px_);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    const int64_t B = pixels.size(0);
    const auto places = windows(pixels.size(2), pixels.size(3));
    const auto passes = static_cast<int64_t>(places.size()) + 1;
    auto progress = context.progress("occlusion", B * passes);
    const auto reference = reference_image(pixels, reference_from_name(reference_),
                                           with_mean_color({}, target_->info().mean_color));
    std::vector<Tensor> maps;
    for (int64_t b = 0; b < B; ++b)
      maps.push_back(one_map(pixels.narrow(0, b, 1), reference.narrow(0, b, 1), classes.narrow(0, b, 1),
                             places, progress, context));
    return {torch::stack(maps).to(pixels.device()), Passes{static_cast<double>(passes), 0}};
  }

 private:
  struct Window {
    int64_t top, left;
  };

  std::vector<int64_t> starts(int64_t side) const {
    std::vector<int64_t> out = {0};
    while (out.back() + window_px_ < side) out.push_back(out.back() + stride_px_);
    return out;
  }
  std::vector<Window> windows(int64_t height, int64_t width) const {
    std::vector<Window> out;
    for (const int64_t top : starts(height))
      for (const int64_t left : starts(width)) out.push_back({top, left});
    return out;
  }

  Tensor one_map(const Tensor& image, const Tensor& reference, const Tensor& wanted,
                 const std::vector<Window>& places, Progress& progress, const Context& context) {
    const int64_t H = image.size(2), W = image.size(3), cell = std::gcd(window_px_, stride_px_),
                  columns = (W + cell - 1) / cell, K = (H + cell - 1) / cell * columns;
    const auto region = (torch::arange(H, torch::kInt32).floor_divide(cell).unsqueeze(1) * columns +
                         torch::arange(W, torch::kInt32).floor_divide(cell))
                            .to(torch::kInt32);  // (H, W)
    const auto for_cells = [&](const Window& window, const auto& body) {
      for (int64_t y = window.top; y < std::min<int64_t>(window.top + window_px_, H); y += cell)
        for (int64_t x = window.left; x < std::min<int64_t>(window.left + window_px_, W); x += cell)
          body(y / cell * columns + x / cell);
    };
    PerturbedImages shown{image,  reference,
                          region, torch::ones({1, 1, K}),
                          wanted, score_ == "logit" ? Score::kLogit : Score::kProbability};
    const double whole = target_->perturbed_scores(shown, false).scores.item<double>();
    progress.advance();
    std::vector<double> falls(K), covered(K);
    const auto count = static_cast<int64_t>(places.size());
    for (int64_t first = 0; first < count; first += kOcclusionChunk) {
      context.cancel->check();
      const int64_t n = std::min(kOcclusionChunk, count - first);
      shown.keep = torch::ones({1, n, K});
      float* keep = shown.keep.data_ptr<float>();
      for (int64_t i = 0; i < n; ++i) for_cells(places[first + i], [&](int64_t k) { keep[i * K + k] = 0; });
      const Tensor scores = target_->perturbed_scores(shown, false).scores.contiguous();  // (1, n)
      for (int64_t i = 0; i < n; ++i)
        for_cells(places[first + i], [&](int64_t k) {
          falls[k] += whole - scores.data_ptr<float>()[i];
          ++covered[k];
        });
      progress.advance(n);
    }
    auto map = torch::empty({H, W});
    const auto* of = region.data_ptr<int32_t>();
    for (int64_t i = 0; i < H * W; ++i)
      map.data_ptr<float>()[i] = static_cast<float>(falls[of[i]] / covered[of[i]]);
    return map;
  }

  int window_px_ = 0, stride_px_ = 0;
  std::string reference_ = "mean", score_ = "probability";
};

}  // namespace

MethodRecord occlusion_method() {
  return {"occlusion",
          "fall of the class probability while a square window is hidden",
          "Zeiler and Fergus 2014, arXiv:1311.2901",
          "",
          fits_any,
          [] { return std::unique_ptr<Method>(new Occlusion); },
          "Not in the paper's tables. Zeiler and Fergus hide with gray and show the score at the window's "
          "place; here hidden pixels show the mean color, and a pixel gets the mean over the windows that "
          "cover it."};
}

}  // namespace aha
