// center: exp(-(dy^2 + dx^2) / (2 sigma^2)) around the middle of the image. It looks at nothing:
// photographers put things in the middle.
#include "aha/methods/method_records.h"

namespace aha {
namespace {

class Center : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("sigma", sigma_, "standard deviation as a share of the image's height")
        .range(0.001, 100);
  }

  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t>,
                        const Context&) override {
    const auto B = pixels.size(0), H = pixels.size(2), W = pixels.size(3);
    const double sigma_px = sigma_ * static_cast<double>(H);
    const auto bell = [&](int64_t n) {
      const auto d = torch::arange(n, torch::kFloat64) - static_cast<double>(n - 1) / 2;
      return (d.square() / (-2 * sigma_px * sigma_px)).exp();
    };
    const auto map = torch::outer(bell(H), bell(W)).to(torch::kFloat32).to(pixels.device());  // (H, W)
    return {map.expand({B, H, W}).contiguous(), Passes{}};
  }

 private:
  double sigma_ = 0.25;
};

}  // namespace

MethodRecord center_method() {
  return {"center", "a bell around the middle of the image, a control", "", "",
          fits_any, [] { return std::unique_ptr<Method>(new Center); }, "", false};
}

}  // namespace aha
