#include "aha/bench/kernels_section.h"

#include <fmt/format.h>

#include "aha/base/rng.h"
#include "aha/bench/peak.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/kernels/elementwise/elementwise.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"

namespace aha {
namespace {

// Operations a value, by the formula of each kernel.
constexpr double kLayerNorm = 8, kLayerNormBack = 12, kGelu = 24, kCompose = 2, kComposeBack = 2;

std::vector<float> random_floats(int64_t n, float scale) {
  Rng rng(1);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& x : values) x = scale * static_cast<float>(rng.uniform(-1, 1));
  return values;
}

// Pairs of a pixel and a tap of a 7-wide kernel that fall on a line of `side` pixels.
int64_t taps_on_line(int64_t side) {
  constexpr int64_t kReach = DepthwiseWeights::kReach;
  int64_t taps = 0;
  for (int64_t x = 0; x < side; ++x)
    taps += std::min(x + kReach, side - 1) - std::max<int64_t>(x - kReach, 0) + 1;
  return taps;
}

// One kernel set under measurement.
struct Bench {
  const KernelSet& kernels;
  const KernelBenchOptions& options;
  const Context& context;
  double peak = 0;
  std::vector<KernelRow> rows = {};

  void measure(std::string kernel, std::string problem, const std::string& what, double flops,
               const std::function<void()>& work) {
    const double ms = best_ms(work, TimeKind::kThreadCpu, {options.seconds, 3}, context);
    const double gflops = 1e-6 * flops / ms;
    rows.push_back({std::move(kernel), std::move(problem), what, std::string(name_of(kernels.isa)),
                    std::string(kernels.name), ms, gflops, gflops / peak});
  }

  void gemm_problem(const Problem& p) {
    const int64_t rows = p.size(0), k = p.size(1), n = p.size(2);
    const auto weights = random_floats(n * k, 0.03f);
    const auto w = PackedWeights::forward(kernels.format, weights.data(), n, k);
    const int64_t stride = w.padded_outputs();
    const auto bias = random_floats(stride, 1), values = random_floats(k, 1);
    Activations x(kernels.format, rows, k), out(kernels.format, rows, n);
    ActivationDerivative derivative(kernels.format, rows, n);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < k; ++c) x.set(r, c, values[c]);
    std::vector<float> floats(static_cast<size_t>(rows * stride));
    struct Case {
      const char* name;
      Epilogue epilogue;
      bool only_long;
    };
    const std::initializer_list<Case> cases = {
        {"gemm", StoreRows{floats.data(), stride, bias.data()}, false},
        {"gemm gelu+derivative", GeluToActivations{&out, bias.data(), &derivative}, false},
        {"gemm add", AddToRows{floats.data(), stride, bias.data()}, true},
        {"gemm operand", StoreActivations{&out, bias.data()}, true},
        {"gemm gelu", GeluToActivations{&out, bias.data(), nullptr}, true},
        {"gemm scale", ScaleToActivations{&out, &derivative}, true}};
    for (const Case& c : cases)
      if (options.long_list || !c.only_long)
        measure(c.name, fmt::format("{} x {} x {}", rows, k, n), p.words,
                2.0 * static_cast<double>(rows * k * n), [&] { gemm(kernels, rows, x, w, c.epilogue); });
  }

  void attention_problem(const Problem& p) {
    const int64_t images = p.size(0), heads = p.size(1), tokens = p.size(2), width = p.size(3);
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
    std::vector<float> sums(static_cast<size_t>(images * heads * tokens));
    const AttentionInput input{&q, &k, &v, images};
    const std::string problem =
        fmt::format("{} images, {} heads, {} tokens, width {}", images, heads, tokens, width);
    const double product = 2.0 * static_cast<double>(images * heads * tokens * tokens * width);
    measure("attention", problem, p.words, 2 * product,
            [&] { attention_forward(kernels, input, out, sums.data()); });
    measure("attention back", problem, p.words, 5 * product, [&] {
      attention_backward(
          kernels, input,
          {&v, sums.data(), &gradients, 0, &gradients, heads * width, &gradients, 2 * heads * width});
    });
  }

  // The gradient of a GEMM's weights: dy^T x.
  void weight_gradient_problem(const Problem& p) {
    const int64_t rows = p.size(0), n = p.size(1), k = p.size(2);
    const int64_t stride = rounded_to_panel(k);
    Activations dy(kernels.format, rows, n), x(kernels.format, rows, k);
    operand_from_rows(kernels, rows, random_floats(rows * n, 1).data(), n, dy);
    operand_from_rows(kernels, rows, random_floats(rows * k, 1).data(), k, x);
    std::vector<float> weight(static_cast<size_t>(n * stride)),
        bias(static_cast<size_t>(rounded_to_panel(n)));
    measure("weight gradient", fmt::format("{} x {} x {}", rows, n, k), p.words,
            2.0 * static_cast<double>(rows * n * k), [&] {
              weight_gradient(kernels, rows, {&dy, &x, weight.data(), stride, bias.data()});
            });
  }

  // Taps that fall beside the image are not computed and do not count.
  void depthwise_problem(const Problem& p) {
    const int64_t images = p.size(0), side = p.size(1), channels = p.size(2);
    const int64_t count = images * side * side * channels;
    const auto kernel = random_floats(channels * DepthwiseWeights::kTaps, 0.1f), in = random_floats(count, 1);
    std::vector<float> out(in.size());
    const auto forward = DepthwiseWeights::forward(kernel.data(), nullptr, channels),
               back = DepthwiseWeights::backward(kernel.data(), channels);
    const std::string problem = fmt::format("{} images, {} x {}, {} channels", images, side, side, channels);
    const double flops =
        2.0 * static_cast<double>(images * channels * taps_on_line(side) * taps_on_line(side));
    measure("depthwise", problem, p.words, flops, [&] {
      depthwise(kernels, 0, images * side, {in.data(), channels, side, side, &forward, out.data(), channels});
    });
    // As in a frozen ConvNeXt: added to the gradient that came past the block, and laid out for the next
    // product.
    Activations operand(kernels.format, images * side * side, channels);
    measure("depthwise back", problem, p.words, flops, [&] {
      depthwise(kernels, 0, images * side,
                {in.data(), channels, side, side, &back, out.data(), channels, true, &operand});
    });
    std::vector<float> taps(static_cast<size_t>(channels * DepthwiseWeights::kTaps)),
        bias(static_cast<size_t>(channels));
    measure("depthwise weights", problem, p.words, flops, [&] {
      depthwise_weight_gradient(
          kernels, images,
          {in.data(), out.data(), channels, channels, side, side, channels, taps.data(), bias.data()});
    });
  }

  void convolution_problem(const Problem& p) {
    const int64_t side = p.size(0), channels = p.size(1), outputs = p.size(2);
    constexpr int64_t kSide = 3;
    const int64_t wide = side + kSide - 1, depth = kSide * kSide * channels;
    const auto in = random_floats(wide * wide * channels, 1), kernel = random_floats(outputs * depth, 0.1f);
    std::vector<float> out(static_cast<size_t>(side * side * outputs));
    const ConvolutionWeights weights(kernel.data(), nullptr, outputs, channels, kSide);
    measure("convolution", fmt::format("{} x {}, {} to {} channels", side, side, channels, outputs), p.words,
            2.0 * static_cast<double>(side * side * depth * outputs), [&] {
              convolution(kernels, side, {&weights, in.data(), wide, 1, out.data(), side});
            });
  }

  void rows_of_values() {
    const int64_t rows = 1576, width = 768;
    const double count = static_cast<double>(rows * width);
    const std::string problem = fmt::format("{} x {}", rows, width), what = "ViT-B/16, a chunk of 8 images";
    const auto x = random_floats(rows * width, 1);
    Activations xhat(kernels.format, rows, width), operand(kernels.format, rows, width);
    std::vector<float> rstd(rows), dx(static_cast<size_t>(rows * width)), y = dx, slope = dx;
    measure("layer norm", problem, what, kLayerNorm * count,
            [&] { layer_norm(kernels, rows, x.data(), width, 1e-6f, xhat, rstd.data()); });
    measure("layer norm back", problem, what, kLayerNormBack * count, [&] {
      layer_norm_backward(kernels, rows, {x.data(), width, &xhat, rstd.data(), dx.data(), width, &operand});
    });
    measure("gelu", problem, what, kGelu * count,
            [&] { gelu(kernels, rows * width, x.data(), y.data(), slope.data()); });
  }

  void perturbed_images() {
    const PatchGeometry geometry;
    const int side = geometry.width, cell = 8, grid = side / cell, regions = grid * grid;
    const auto image = random_floats(int64_t{3} * side * side, 1);
    std::vector<int32_t> region;
    for (int i = 0; i < side * side; ++i) region.push_back(i / side / cell * grid + i % side / cell);
    const PatchSource source(geometry, image, std::vector<float>(image.size()), region, regions);
    Activations patches(kernels.format, geometry.tokens(), geometry.columns());
    const auto gradient = random_floats(geometry.tokens() * source.padded_columns(), 1);
    const std::vector<float> keep(regions, 0.5f);
    std::vector<float> d_keep(regions);
    const double count = static_cast<double>(image.size());
    const std::string problem = fmt::format("{} px, {} regions", side, regions), what = "one perturbed image";
    measure("compose", problem, what, kCompose * count, [&] { compose(kernels, source, keep, 0, patches); });
    measure("compose back", problem, what, kComposeBack * count,
            [&] { compose_backward(kernels, source, gradient.data(), source.padded_columns(), d_keep); });
  }

  void all() {
    peak = peak_gflops(kernels.isa, {options.seconds, 3}, context);
    for (const Problem& p : problems_of("gemm", 3, options.long_list)) gemm_problem(p);
    for (const Problem& p : problems_of("attention", 4, options.long_list)) attention_problem(p);
    for (const Problem& p : problems_of("weight_gradient", 3, options.long_list)) weight_gradient_problem(p);
    for (const Problem& p : problems_of("depthwise", 3, options.long_list)) depthwise_problem(p);
    for (const Problem& p : problems_of("convolution", 3, options.long_list)) convolution_problem(p);
    rows_of_values();
    perturbed_images();
  }
};

std::vector<const KernelSet*> sets_to_measure(bool all) {
  if (!all) {
    const KernelSet *f32 = &best_kernel_set(Precision::kF32), *bf16 = &best_kernel_set(Precision::kBf16);
    return f32 == bf16 ? std::vector{f32} : std::vector{bf16, f32};
  }
  std::vector<const KernelSet*> sets;
  for (const KernelSet* kernels : available_kernel_sets())
    if (kernels->isa != Isa::kReference) sets.push_back(kernels);
  return sets;
}

}  // namespace

std::vector<KernelRow> bench_kernels(const KernelBenchOptions& options, const Context& context) {
  std::vector<KernelRow> rows;
  const auto sets = sets_to_measure(options.long_list);
  auto progress = context.progress("kernels", static_cast<int64_t>(sets.size()));
  for (const KernelSet* kernels : sets) {
    Bench bench{*kernels, options, context};
    bench.all();
    rows.insert(rows.end(), bench.rows.begin(), bench.rows.end());
    progress.advance();
  }
  return rows;
}

nlohmann::ordered_json json_from(const KernelRow& r) {
  return {
      {"kernel", r.kernel}, {"problem", r.problem}, {"what", r.what},     {"isa", r.isa},
      {"set", r.set},       {"ms", r.ms},           {"gflops", r.gflops}, {"share_of_peak", r.share_of_peak}};
}

std::string table_from(const std::vector<KernelRow>& rows) {
  std::string text, set;
  for (const auto& r : rows) {
    if (r.set != set)
      text +=
          fmt::format("{}, one thread; a core can do {:.0f} GFLOP/s\n  {:<22} {:<42} {:>9} {:>9} {:>6}\n",
                      set = r.set, r.gflops / r.share_of_peak, "kernel", "problem", "ms", "GFLOP/s", "peak");
    text += fmt::format("  {:<22} {:<42} {:>9.3f} {:>9.1f} {:>4.0f} %  {}\n", r.kernel, r.problem, r.ms,
                        r.gflops, 100 * r.share_of_peak, r.what);
  }
  return text;
}

}  // namespace aha
