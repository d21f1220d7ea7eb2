// A method of your own, beside the bundled ones: the plainest form of occlusion (Zeiler and Fergus 2014). A
// square of the mean color hides one place after the other; a place matters as much as the probability of the
// class falls while it is hidden.
//
//   02_add_a_method TARGET IMAGE OUT
//   02_add_a_method cifar10-convnext frog.png maps
#include <cstdio>

#include "aha/app/compare.h"
#include "aha/base/startup.h"
#include "aha/methods/catalog.h"
#include "aha/networks/catalog.h"
#include "aha/tensor/torch.h"

namespace {

using aha::Tensor;

class HiddenSquare : public aha::Method {
 public:
  // From this list follow `hidden_square:cell=8`, its range check, its help and its name in every result.
  aha::Fields fields() override {
    return aha::Fields().add("cell", cell_px_, "side of the hidden square in pixels").range(1, 4096);
  }

  aha::Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                             const aha::Context& context) override {
    const torch::NoGradGuard no_grad;
    const auto B = pixels.size(0), H = pixels.size(2), W = pixels.size(3);
    const auto& mean = target_->info().mean_color;
    const auto hidden = torch::tensor({mean[0], mean[1], mean[2]}).to(pixels.options()).view({3, 1, 1});
    const Tensor clean = probability(pixels, classes);  // (B)
    Tensor maps = torch::empty({B, H, W}, pixels.options());
    double forwards = 1;
    for (int64_t y = 0; y < H; y += cell_px_)
      for (int64_t x = 0; x < W; x += cell_px_, ++forwards) {
        context.cancel->check();
        const auto place = [&](const Tensor& all, int64_t row_axis) {
          return all.slice(row_axis, y, y + cell_px_).slice(row_axis + 1, x, x + cell_px_);
        };
        const Tensor occluded = pixels.clone();
        place(occluded, 2).copy_(hidden.expand_as(place(occluded, 2)));
        place(maps, 1).copy_(
            (clean - probability(occluded, classes)).view({B, 1, 1}).expand_as(place(maps, 1)));
      }
    return {maps, aha::Passes{forwards, 0}};
  }

 private:
  Tensor probability(const Tensor& pixels, const Tensor& classes) {
    return torch::softmax(target_->logits(pixels), 1).gather(1, classes.unsqueeze(1)).squeeze(1);  // (B)
  }

  int cell_px_ = 8;
};

aha::MethodRecord hidden_square_method() {
  return {"hidden_square",
          "fall of the probability while a square is hidden",
          "Zeiler and Fergus 2014, arXiv:1311.2901",
          "",                                              // needs nothing of the target but its logits
          [](const aha::MethodContext&) { return true; },  // so that it fits every target
          [] { return std::unique_ptr<aha::Method>(new HiddenSquare); }};
}

}  // namespace

int main(int argc, char** argv) try {
  aha::prepare_process(argv);
  if (argc != 4) return std::fprintf(stderr, "usage: %s TARGET IMAGE OUT\n", argv[0]), 2;
  aha::Context context;
  aha::start_compute(context);
  const auto target = aha::load_classifier(argv[1], {}, context);

  aha::add_method(hidden_square_method());
  aha::CompareOptions options;
  options.methods = {"hidden_square:cell=4", "hidden_square:cell=4:blur=1", "gradient",
                     "random"};  // blur comes with every method
  options.out = argv[3];
  aha::compare(
      {*target}, {argv[2]}, options,
      [](const aha::Compared& c) {
        for (const auto& [method, m] : c.methods)
          std::printf("%-24s insertion %.3f, deletion %.3f, %s\n", method.c_str(), m.score->insertion,
                      m.score->deletion, aha::text_from_passes(m.made.passes).c_str());
        std::printf("%s\n", c.file.c_str());
      },
      context);
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
