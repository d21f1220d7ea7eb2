// Logits and input gradients of one of our networks for a tensor that a script wrote.
//
//   models_probe ARCHITECTURE:WEIGHTS INPUT.npy LOGITS.npy GRADIENT.npy
//
// The input (B, 3, H, W) is taken as already normalized; the gradient is that of the sum over the batch of
// logit 7.
#include <cstdio>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/base/startup.h"
#include "aha/networks/catalog.h"

namespace {

void write(const char* path, const aha::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  aha::write_npy(path, flat.sizes().vec(), {flat.data_ptr<float>(), static_cast<size_t>(flat.numel())});
}

}  // namespace

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  if (argc != 5) {
    std::fprintf(stderr, "usage: models_probe ARCHITECTURE:WEIGHTS INPUT.npy LOGITS.npy GRADIENT.npy\n");
    return 2;
  }
  try {
    const aha::Context context;
    aha::start_compute(context);
    aha::LoadOptions raw;
    raw.mean = {0, 0, 0};
    raw.std = {1, 1, 1};
    const auto classifier = aha::load_classifier(argv[1], raw, context);
    const auto array = aha::read_npy(argv[2]);
    const auto x = torch::tensor(array.values).view(array.shape).requires_grad_();
    const auto logits = classifier->logits(x);
    const auto gradient = torch::autograd::grad({logits.select(1, 7).sum()}, {x})[0];
    write(argv[3], logits.detach());
    write(argv[4], gradient);
  } catch (const aha::Error& error) {
    std::fprintf(stderr, "models_probe: %s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
