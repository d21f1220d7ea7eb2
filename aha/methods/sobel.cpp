// sobel: the strength of edges, sqrt(gx^2 + gy^2) of the gray image with repeated borders. A control that
// knows pixels but no classifier.
#include "aha/methods/method_records.h"

namespace aha {
namespace {

class Sobel : public Method {
 public:
  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t>,
                        const Context&) override {
    const auto gray =
        0.299 * pixels.select(1, 0) + 0.587 * pixels.select(1, 1) + 0.114 * pixels.select(1, 2);  // (B, H, W)
    const auto padded = torch::replication_pad2d(gray.detach().unsqueeze(1), {1, 1, 1, 1});
    const auto across =
        torch::tensor({-1., 0., 1., -2., 0., 2., -1., 0., 1.}).to(padded.options()).view({1, 1, 3, 3});
    const auto gx = torch::conv2d(padded, across), gy = torch::conv2d(padded, across.transpose(2, 3));
    return {(gx.square() + gy.square()).sqrt().squeeze(1), Passes{}};
  }
};

}  // namespace

MethodRecord sobel_method() {
  return {"sobel",  "strength of edges, a control",
          "",       "",
          fits_any, [] { return std::unique_ptr<Method>(new Sobel); },
          "",       false};
}

}  // namespace aha
