// Forward, and forward + backward to the pixels, of vision transformers: the engine beside eager libtorch in the same process, best of several.
//
//   networks_bench [threads] [batch]
#include <chrono>

#include "aha/base/parallel.h"
#include "aha/base/startup.h"
#include "aha/models/catalog.h"
#include "aha/models/vit_engine.h"

namespace {

double best_ms(int repeats, const std::function<void()>& work) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

void measure(const std::string& name, const aha::VitConfig& config, int64_t batch, int repeats) {
  aha::Vit network(config);
  network->initialise(1);
  network->eval();
  for (auto& p : network->parameters()) p.requires_grad_(false);
  aha::InputSpec input;
  input.size = config.image_size;
  const auto pixels = torch::rand({batch, 3, config.image_size, config.image_size});
  const auto back = [&](const std::function<torch::Tensor(const torch::Tensor&)>& f) {
    auto x = pixels.clone().requires_grad_();
    f(x).sum().backward();
  };
  const auto eager = [&](const torch::Tensor& x) { return network->forward(aha::normalised(x, input)); };
  for (const auto precision : {aha::Precision::kF32, aha::Precision::kBf16}) {
    aha::FrozenVit engine(aha::frozen_weights_from(network, input), precision);
    const auto fast = [&](const torch::Tensor& x) { return engine.logits(x); };
    double ef = 1e9, eb = 1e9, ff = 1e9, fb = 1e9;
    for (int i = 0; i < repeats; ++i) {  // side by side, because the machine is shared
      ef = std::min(ef, best_ms(1, [&] { torch::NoGradGuard no; eager(pixels); }));
      ff = std::min(ff, best_ms(1, [&] { torch::NoGradGuard no; fast(pixels); }));
      eb = std::min(eb, best_ms(1, [&] { back(eager); }));
      fb = std::min(fb, best_ms(1, [&] { back(fast); }));
    }
    const double n = static_cast<double>(batch);
    fmt::print("{:<12} {:<5} {:<14} forward {:8.3f} ms, eager {:8.3f}: {:5.2f}x   forward+backward {:8.3f} ms, eager {:8.3f}: {:5.2f}x   packs {} MB, workspace {} MB\n", name,
               precision == aha::Precision::kF32 ? "f32" : "bf16", engine.kernels().name, ff / n, ef / n, ef / ff, fb / n, eb / n, eb / fb,
               engine.packed_bytes() >> 20, engine.workspace_bytes() >> 20);
  }
}

}  // namespace

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  aha::Context context;
  context.threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const int64_t batch = argc > 2 ? std::atoi(argv[2]) : 8;
  aha::start_compute(context);
  aha::VitConfig small;
  small.image_size = 32, small.patch = 4, small.width = 192, small.depth = 6, small.heads = 3, small.mlp_hidden = 384, small.classes = 10;
  fmt::print("threads {}, batch {}, OpenBLAS {}\n", aha::threads(), batch, aha::openblas_core());
  measure("vit4 (32 px)", small, 4 * batch, 9);
  measure("vit_ti_16", std::get<aha::VitConfig>(aha::architecture_named("vit_ti_16").config), batch, 7);
  measure("vit_b_16", std::get<aha::VitConfig>(aha::architecture_named("vit_b_16").config), batch, 3);
}
