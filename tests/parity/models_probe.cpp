// Logits and input gradients of one of our networks for a tensor that a script wrote.
//
//   models_probe ARCHITECTURE:WEIGHTS INPUT.npy LOGITS.npy GRADIENT.npy
//   models_probe ARCHITECTURE:WEIGHTS INPUT.npy LOGITS.raw GRADIENT.raw double
//
// The input (B, 3, H, W) is taken as already normalized; the gradient is that of the sum over the batch of
// logit 7. First form: the classifier as the product runs it. Second: the network itself in float64, whose
// numbers are written without a header.
#include <cstdio>
#include <fstream>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/base/startup.h"
#include "aha/networks/catalog.h"

namespace {

void write(const char* path, const aha::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  if (flat.scalar_type() == torch::kFloat64)
    std::ofstream(path, std::ios::binary)
        .write(static_cast<const char*>(flat.data_ptr()), static_cast<std::streamsize>(flat.nbytes()));
  else
    aha::write_npy(path, flat.sizes().vec(), {flat.data_ptr<float>(), static_cast<size_t>(flat.numel())});
}

}  // namespace

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  const bool in_double = argc == 6 && std::string_view(argv[5]) == "double";
  if (argc != 5 && !in_double) {
    std::fprintf(stderr, "usage: models_probe ARCHITECTURE:WEIGHTS INPUT.npy LOGITS GRADIENT [double]\n");
    return 2;
  }
  try {
    const aha::Context context;
    aha::start_compute(context);
    aha::LoadOptions raw;
    raw.mean = {0, 0, 0};
    raw.std = {1, 1, 1};
    const auto array = aha::read_npy(argv[2]);
    auto x = torch::tensor(array.values).view(array.shape);
    aha::Tensor logits;
    if (in_double) {
      const auto network = aha::load_network(argv[1]).network;
      network->module().to(torch::kFloat64);
      x = x.to(torch::kFloat64).requires_grad_();
      logits = network->forward(x);
    } else {
      const auto classifier = aha::load_classifier(argv[1], raw, context);
      x.requires_grad_();
      logits = classifier->logits(x);
    }
    const auto gradient = torch::autograd::grad({logits.select(1, 7).sum()}, {x})[0];
    write(argv[3], logits.detach());
    write(argv[4], gradient);
  } catch (const aha::Error& error) {
    std::fprintf(stderr, "models_probe: %s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
