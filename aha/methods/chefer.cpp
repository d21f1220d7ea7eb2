// chefer: generic attention attribution; relevance grows by relu(mean over heads of gradient * attention)
// block after block. One forward and one backward; the bar on real ViTs.
#include "aha/attribution/chefer.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class Chefer : public Method {
 public:
  void prepare(const MethodContext& context) override { target_ = &context.target; }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    return {upsampled(grid_from_patches(chefer_values(*target_, pixels, classes)), pixels.size(2),
                      pixels.size(3)),
            Passes{1, 1}};
  }

 private:
  Classifier* target_ = nullptr;
};

}  // namespace

MethodRecord chefer_method() {
  return {"chefer",
          "generic attention attribution",
          "Chefer et al. 2021, arXiv:2103.15679",
          "attention",
          has_attention,
          [] { return std::unique_ptr<Method>(new Chefer); }};
}

}  // namespace aha
