#include "aha/perturb/reference.h"

#include <algorithm>
#include <cmath>

#include "aha/base/error.h"

namespace aha {
namespace {

const std::vector<std::string> kNames = {"black", "mean", "blur", "gray"};
const std::vector<std::string> kUsual = {"black", "mean", "blur"};

enum class Border { kReflect, kZero };

// Index j of a line of n that is continued by reflection without repeating the border, as often as needed.
int64_t reflected(int64_t j, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  j = ((j % period) + period) % period;
  return j < n ? j : period - j;
}

// (n, n): a blur of a line as a matrix, borders included. A product with it is as exact as a convolution and
// allows kernels wider than the image.
Tensor blur_matrix(int64_t n, const std::vector<double>& weights, Border border) {
  const auto half = static_cast<int64_t>(weights.size() / 2);
  Tensor matrix = torch::zeros({n, n}, torch::kFloat64);
  auto entry = matrix.accessor<double, 2>();
  for (int64_t y = 0; y < n; ++y) {
    for (int64_t d = -half; d <= half; ++d) {
      const int64_t from = y + d;
      if (border == Border::kReflect)
        entry[y][reflected(from, n)] += weights[d + half];
      else if (from >= 0 && from < n)
        entry[y][from] += weights[d + half];
    }
  }
  return matrix;
}

Tensor blurred(const Tensor& pixels, const std::vector<double>& weights, Border border) {
  const Tensor down = blur_matrix(pixels.size(2), weights, border).to(pixels.options());
  const Tensor across = blur_matrix(pixels.size(3), weights, border).to(pixels.options());
  return down.matmul(pixels).matmul(across.t());
}

Tensor color_tensor(const std::vector<double>& color, const Tensor& pixels) {
  if (color.size() != 3) throw input_error("mean-color: expected 3 numbers, found {}", color.size());
  return torch::tensor(color, torch::kFloat64).to(pixels.options()).view({1, 3, 1, 1});
}

const std::vector<double>& gray_of(const ReferenceOptions& options) {
  return options.gray.empty() ? options.mean_color : options.gray;
}

void check_kernel(int taps, double sigma) {
  if (taps < 1 || taps % 2 == 0) throw input_error("blur: expected an odd number of taps, found {}", taps);
  if (!(sigma > 0) || !std::isfinite(sigma))
    throw input_error("blur: expected sigma > 0 pixels, found {}", sigma);
}

}  // namespace

ReferenceKind reference_from_name(const std::string& name) {
  for (size_t n = 0; n < kNames.size(); ++n)
    if (kNames[n] == name) return static_cast<ReferenceKind>(n);
  throw unknown_name_error("reference", name, kNames);
}

Fields fields(ReferenceOptions& o) {
  return Fields()
      .add("mean-color", o.mean_color,
           "red, green and blue of the mean reference, 0..1; empty = the target's")
      .range(0, 1)
      .add("blur", o.blur, "kind of blur")
      .choices({"gaussian", "rise", "adaptive"})
      .add("blur-sigma", o.sigma_px, "width of the blur in pixels; 0 = by image size")
      .range(0, 10000)
      .add("blur-kernel", o.kernel_px, "taps of the blur in pixels, odd; 0 = by sigma")
      .range(0, 20001);
}

ReferenceOptions with_mean_color(ReferenceOptions options, const std::array<double, 3>& of_target) {
  if (options.mean_color.empty()) options.mean_color.assign(of_target.begin(), of_target.end());
  return options;
}

Tensor reference_image(const Tensor& pixels, ReferenceKind kind, const ReferenceOptions& options) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  if (kind == ReferenceKind::kBlack) return torch::zeros_like(pixels);
  if (kind == ReferenceKind::kMean || kind == ReferenceKind::kGray)
    return color_tensor(kind == ReferenceKind::kMean ? options.mean_color : gray_of(options), pixels)
        .expand_as(pixels)
        .contiguous();
  if (options.blur == "rise") {
    const Tensor color = color_tensor(gray_of(options), pixels);
    const double sigma = options.sigma_px > 0 ? options.sigma_px : 5;
    const auto weights = reflected_impulse_weights(options.kernel_px > 0 ? options.kernel_px : 11, sigma);
    return blurred(pixels - color, weights, Border::kZero) + color;
  }
  if (options.blur == "adaptive")
    throw input_error(
        "blur: adaptive follows the target's answers and is for evaluations; expected gaussian or rise");
  if (options.blur != "gaussian") {
    const std::vector<std::string> available = {"gaussian", "rise"};
    throw unknown_name_error("blur", options.blur, available);
  }
  const double side = static_cast<double>(std::min(pixels.size(2), pixels.size(3)));
  const double sigma = options.sigma_px > 0 ? options.sigma_px : 25.0 / 224 * side;
  const int taps =
      options.kernel_px > 0 ? options.kernel_px : 2 * static_cast<int>(std::lround(2 * sigma)) + 1;
  return blurred(pixels, gaussian_weights(taps, sigma), Border::kReflect);
}

Tensor reference_images(const Tensor& pixels, std::span<const std::string> kinds,
                        const ReferenceOptions& options) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> out;
  for (size_t b = 0; b < kinds.size(); ++b)
    out.push_back(reference_image(pixels.narrow(0, static_cast<int64_t>(b), 1), reference_from_name(kinds[b]),
                                  options));
  return torch::cat(out);
}

std::vector<Tensor> all_references(const Tensor& pixels, const ReferenceOptions& options,
                                   std::vector<std::string> names) {
  std::vector<Tensor> out;
  for (const auto& name : names.empty() ? kUsual : names)
    out.push_back(reference_images(pixels, std::vector(static_cast<size_t>(pixels.size(0)), name), options));
  return out;
}

bool uses_adaptive_blur(const std::vector<std::string>& names, const ReferenceOptions& options) {
  return options.blur == "adaptive" && std::find(names.begin(), names.end(), "blur") != names.end();
}

nlohmann::json json_from_references(const ReferenceOptions& options, std::vector<std::string> names) {
  ReferenceOptions copy = options;
  nlohmann::json blur = json_from_fields(fields(copy)), out = nlohmann::json::object();
  blur.erase("mean-color");
  blur["rule"] =
      options.blur == "gaussian"
          ? "gaussian, borders reflected; sigma 0 = 25/224 of the shorter side, kernel 0 = 4 sigma + 1 taps"
      : options.blur == "rise" ? "an impulse blurred with reflected tails, borders zero in normalized space; "
                                 "sigma 0 = 5, kernel 0 = 11"
                               : "sigma = kernel grows until the class is hidden, borders zero in normalized "
                                 "space; sizes at 224 pixels";
  if (options.blur == "adaptive") {
    blur["last-kernel"] = options.last_kernel_px;
    blur["hidden-probability"] = options.hidden_probability;
  }
  if (options.blur != "gaussian") blur["border"] = gray_of(options);
  for (const auto& name : names.empty() ? kUsual : names)
    out[name] = name == "black"  ? nlohmann::json{0, 0, 0}
                : name == "mean" ? nlohmann::json(options.mean_color)
                : name == "gray" ? nlohmann::json(gray_of(options))
                                 : blur;
  return out;
}

std::vector<double> gaussian_weights(int taps, double sigma) {
  check_kernel(taps, sigma);
  std::vector<double> weights(taps);
  double sum = 0;
  for (int n = 0; n < taps; ++n) {
    const double d = n - taps / 2;
    sum += weights[n] = std::exp(-d * d / (2 * sigma * sigma));
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> reflected_impulse_weights(int taps, double sigma) {
  check_kernel(taps, sigma);
  const int radius = static_cast<int>(std::floor(4 * sigma + 0.5));
  const std::vector<double> gaussian = gaussian_weights(2 * radius + 1, sigma);
  std::vector<double> weights(taps, 0.0);
  for (int i = 0; i < taps; ++i) {
    for (int d = -radius; d <= radius; ++d) {
      const int j = (((i + d) % (2 * taps)) + 2 * taps) % (2 * taps);
      if ((j < taps ? j : 2 * taps - 1 - j) == taps / 2) weights[i] += gaussian[d + radius];
    }
  }
  return weights;
}

}  // namespace aha
