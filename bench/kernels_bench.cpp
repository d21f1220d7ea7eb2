// kernels_bench [--set NAME] [--problems FOLDER] [--seconds S]: GFLOP/s of products and attention on one
// thread, for every kernel set that runs here, beside the raw peak of the multiplier (tiles, or fused
// multiply-adds in registers) measured in the same minute. Times are CPU times, the best of many: machines
// are shared.
#include <time.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/kernels/elementwise.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

double cpu_seconds() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Bench {
  double seconds = 0.4;

  // The fastest of as many runs as fit.
  double best(const std::function<void()>& run) const {
    run();
    double fastest = 1e9, total = 0;
    for (int i = 0; i < 3 || total < seconds; ++i) {
      const double start = cpu_seconds();
      run();
      const double took = cpu_seconds() - start;
      fastest = std::min(fastest, took);
      total += took;
    }
    return fastest;
  }
};

struct Problem {
  std::vector<int64_t> sizes;
  std::string what;
};

std::vector<Problem> problems_in(const std::string& path, int count) {
  std::ifstream file(path);
  if (!file)
    throw input_error("{}: cannot be read; run from the source folder or say --problems FOLDER", path);
  std::vector<Problem> problems;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Problem p;
    for (int64_t size; static_cast<int>(p.sizes.size()) < count && words >> size;) p.sizes.push_back(size);
    if (static_cast<int>(p.sizes.size()) < count)
      throw input_error("{}: expected {} sizes, found '{}'", path, count, line);
    std::getline(words >> std::ws, p.what);
    problems.push_back(p);
  }
  return problems;
}

std::vector<float> random_floats(int64_t n, float scale) {
  Rng rng(1);
  std::vector<float> values(n);
  for (float& x : values) x = scale * static_cast<float>(rng.uniform(-1, 1));
  return values;
}

// A product small enough to stay in the first level cache, without its epilogue's memory: as near to the
// multiplier as the contract allows.
double peak_of(const KernelSet& kernels, const Bench& bench) {
  const int64_t rows = kernels.format == Format::kF32 ? 14 : 32,
                inputs = kernels.format == Format::kF32 ? 256 : 384, outputs = 32;
  const Activations x(kernels.format, rows, inputs);
  const auto weights = random_floats(outputs * inputs, 1);
  const auto w = PackedWeights::forward(kernels.format, weights.data(), outputs, inputs);
  std::vector<float> out(rows * outputs);
  constexpr int kRepeats = 1000;
  const double took = bench.best([&] {
    for (int i = 0; i < kRepeats; ++i) kernels.gemm(rows, x, w, StoreRows{out.data(), outputs, nullptr});
  });
  return 2e-9 * kRepeats * static_cast<double>(rows * inputs * outputs) / took;
}

void bench_gemm(const KernelSet& kernels, const Bench& bench, const std::string& folder, double peak) {
  fmt::print("{:>6} {:>5} {:>5} | {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} | {:>6}\n", "rows", "K", "N", "store",
             "add", "operand", "gelu", "gelu+d", "scale", "share");
  for (const Problem& p : problems_in(folder + "/gemm.txt", 3)) {
    const int64_t rows = p.sizes[0], k = p.sizes[1], n = p.sizes[2];
    const auto weights = random_floats(n * k, 0.03f);
    const auto w = PackedWeights::forward(kernels.format, weights.data(), n, k);
    const auto bias = random_floats(w.padded_outputs(), 1);
    Activations x(kernels.format, rows, k), out(kernels.format, rows, n), derivative(kernels.format, rows, n);
    const auto values = random_floats(k, 1);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < k; ++c) x.set(r, c, values[c]);
    std::vector<float> floats(rows * w.padded_outputs());
    const int64_t stride = w.padded_outputs();
    std::vector<double> speeds;
    for (const Epilogue& e : std::initializer_list<Epilogue>{
             StoreRows{floats.data(), stride, bias.data()}, AddToRows{floats.data(), stride, bias.data()},
             StoreActivations{&out, bias.data()}, GeluToActivations{&out, bias.data(), nullptr},
             GeluToActivations{&out, bias.data(), &derivative}, ScaleToActivations{&out, &derivative}})
      speeds.push_back(2e-9 * static_cast<double>(rows * k * n) /
                       bench.best([&] { gemm(kernels, rows, x, w, e); }));
    fmt::print("{:>6} {:>5} {:>5} | {:8.0f} {:8.0f} {:8.0f} {:8.0f} {:8.0f} {:8.0f} | {:5.0f}%  {}\n", rows,
               k, n, speeds[0], speeds[1], speeds[2], speeds[3], speeds[4], speeds[5], 100 * speeds[0] / peak,
               p.what);
  }
}

void bench_attention(const KernelSet& kernels, const Bench& bench, const std::string& folder) {
  fmt::print("{:>6} {:>5} {:>6} {:>5} | {:>14} {:>14}  (GFLOP/s, ms)\n", "images", "heads", "tokens", "width",
             "forward", "backward");
  for (const Problem& p : problems_in(folder + "/attention.txt", 4)) {
    const int64_t images = p.sizes[0], heads = p.sizes[1], tokens = p.sizes[2], width = p.sizes[3];
    Heads q(kernels.format, images, heads, tokens, width), k(kernels.format, images, heads, tokens, width),
        v(kernels.format, images, heads, tokens, width);
    const auto values = random_floats(width, 0.3f);
    for (Heads* h : {&q, &k, &v})
      for (int64_t i = 0; i < images; ++i)
        for (int64_t j = 0; j < heads; ++j)
          for (int64_t t = 0; t < tokens; ++t)
            for (int64_t c = 0; c < width; ++c) h->set(i, j, t, c, values[(c + t) % width]);
    Activations out(kernels.format, images * tokens, heads * width),
        gradients(kernels.format, images * tokens, 3 * heads * width);
    std::vector<float> sums(images * heads * tokens);
    const AttentionInput input{&q, &k, &v, images};
    const double forward = bench.best([&] { attention_forward(kernels, input, out, sums.data()); });
    const double backward = bench.best([&] {
      attention_backward(
          kernels, input,
          {&v, sums.data(), &gradients, 0, &gradients, heads * width, &gradients, 2 * heads * width});
    });
    const double product = 2e-9 * static_cast<double>(images * heads * tokens * tokens * width);
    fmt::print("{:>6} {:>5} {:>6} {:>5} | {:6.0f} {:7.2f} {:6.0f} {:7.2f}   {}\n", images, heads, tokens,
               width, 2 * product / forward, 1e3 * forward, 5 * product / backward, 1e3 * backward, p.what);
  }
}

void bench_rows(const KernelSet& kernels, const Bench& bench) {
  const int64_t rows = 1576, width = 768;
  const auto x = random_floats(rows * width, 1);
  Activations xhat(kernels.format, rows, width), operand(kernels.format, rows, width);
  std::vector<float> rstd(rows), dx(rows * width);
  const double forward =
      bench.best([&] { layer_norm(kernels, rows, x.data(), width, 1e-6f, xhat, rstd.data()); });
  const double backward = bench.best([&] {
    layer_norm_backward(kernels, rows, {x.data(), width, &xhat, rstd.data(), dx.data(), width, &operand});
  });
  std::vector<float> y(rows * width), slope(rows * width);
  const double gelus = bench.best([&] { gelu(kernels, rows * width, x.data(), y.data(), slope.data()); });

  PatchGeometry geometry;
  const auto image = random_floats(3 * 224 * 224, 1);
  std::vector<int32_t> region;
  for (int i = 0; i < 224 * 224; ++i) region.push_back(i / 224 / 8 * 28 + i % 224 / 8);
  const PatchSource source(geometry, image, std::vector<float>(image.size()), region, 784);
  Activations patches(kernels.format, geometry.tokens(), geometry.columns());
  const std::vector<float> keep(784, 0.5f);
  std::vector<float> d_keep(784);
  const double composing = bench.best([&] { compose(kernels, source, keep, 0, patches); });
  const double reducing = bench.best([&] { compose_backward(kernels, source, x.data(), width, d_keep); });
  fmt::print(
      "layer norm {:.2f} ms, back {:.2f} ms, gelu {:.2f} ms ({} x {}); compose {:.0f} us, back {:.0f} us "
      "(224 px, 784 regions)\n\n",
      1e3 * forward, 1e3 * backward, 1e3 * gelus, rows, width, 1e6 * composing, 1e6 * reducing);
}

int run(int argc, char** argv) {
  Bench bench;
  std::string folder = "bench/problems", only;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--set")
      only = argv[i + 1];
    else if (flag == "--problems")
      folder = argv[i + 1];
    else if (flag == "--seconds")
      bench.seconds = std::atof(argv[i + 1]);
    else
      throw input_error("{}: expected --set, --problems or --seconds", flag);
  }
  flush_denormals();
  fmt::print("CPU: {}\n", describe_cpu());
  for (const KernelSet* kernels : available_kernel_sets()) {
    if (kernels->isa == Isa::kReference || (!only.empty() && kernels->name != only)) continue;
    const double peak = peak_of(*kernels, bench);
    fmt::print("{}: {:.0f} GFLOP/s within the first level cache\n", kernels->name, peak);
    bench_gemm(*kernels, bench, folder, peak);
    bench_attention(*kernels, bench, folder);
    bench_rows(*kernels, bench);
  }
  return 0;
}

}  // namespace
}  // namespace aha

int main(int argc, char** argv) {
  try {
    return aha::run(argc, argv);
  } catch (const aha::Error& error) {
    fmt::print(stderr, "kernels_bench: {}\n", error.what());
    return error.exit_code();
  }
}
