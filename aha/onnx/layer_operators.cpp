// Layers: matrix products, convolutions, pooling, normalization, resizing.
#include <cmath>

#include "aha/onnx/operators.h"

namespace aha {
namespace {

OnnxOutputs onnx_matmul(const OnnxCall& c) {
  return {torch::matmul(c.in(0), c.in(1))};
}

OnnxOutputs onnx_gemm(const OnnxCall& c) {
  const Tensor a = c.integer("transA", 0) ? c.in(0).t() : c.in(0);
  const Tensor b = c.integer("transB", 0) ? c.in(1).t() : c.in(1);
  const double alpha = c.real("alpha", 1), beta = c.real("beta", 1);
  if (!c.has(2)) return {alpha * torch::mm(a, b)};
  if (at::isIntegralType(a.scalar_type(), true)) return {torch::mm(a, b) + c.in(2)};
  return {torch::addmm(c.in(2), a, b, beta, alpha)};
}

OnnxOutputs onnx_einsum(const OnnxCall& c) {
  std::string equation = c.text("equation", "");
  std::erase(equation, ' ');
  return {torch::einsum(equation, c.inputs)};
}

// How windows lie on an image: sizes for each spatial axis, and the zeros (or minus infinities) around it.
struct Windows {
  std::vector<int64_t> kernel, strides, dilations, before, after;
};

Windows windows_of(const OnnxCall& c, at::IntArrayRef spatial, std::vector<int64_t> kernel, bool round_up) {
  const size_t n = spatial.size();
  if (kernel.size() != n) c.refuse(fmt::format("expected a kernel of {} sizes, found {}", n, kernel.size()));
  Windows w{std::move(kernel), c.ints("strides", std::vector<int64_t>(n, 1)),
            c.ints("dilations", std::vector<int64_t>(n, 1)), std::vector<int64_t>(n, 0),
            std::vector<int64_t>(n, 0)};
  const auto pads = c.ints("pads", std::vector<int64_t>(2 * n, 0));
  if (w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n)
    c.refuse(fmt::format("expected strides, dilations and pads of {} axes", n));
  const std::string rule = c.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < n; ++i) {
    if (w.strides[i] < 1 || w.dilations[i] < 1 || w.kernel[i] < 1 || pads[i] < 0 || pads[n + i] < 0)
      c.refuse("expected strides, dilations and kernel from 1 and pads from 0");
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    if (rule == "SAME_UPPER" || rule == "SAME_LOWER") {
      const int64_t outputs = (spatial[i] + w.strides[i] - 1) / w.strides[i];
      const int64_t all = std::max<int64_t>(0, (outputs - 1) * w.strides[i] + reach - spatial[i]);
      w.before[i] = rule == "SAME_LOWER" ? (all + 1) / 2 : all / 2;
      w.after[i] = all - w.before[i];
    } else if (rule != "VALID") {
      w.before[i] = pads[i];
      w.after[i] = pads[n + i];
    }
    if (round_up) {  // more padding behind, so that the last window is whole
      const int64_t rest = (spatial[i] + w.before[i] + w.after[i] - reach) % w.strides[i];
      if (rest > 0) w.after[i] += w.strides[i] - rest;
    }
  }
  return w;
}

bool symmetric(const Windows& w) {
  return w.before == w.after;
}

// In the order of torch's pad: last axis first.
Tensor padded(const Tensor& x, const Windows& w, double value) {
  std::vector<int64_t> pads;
  for (size_t i = w.before.size(); i-- > 0;) pads.insert(pads.end(), {w.before[i], w.after[i]});
  return torch::constant_pad_nd(x, pads, value);
}

at::IntArrayRef spatial_sizes(const OnnxCall& c, const Tensor& x) {
  if (x.dim() < 3) c.refuse(fmt::format("expected images (N, C, ...), found {} axes", x.dim()));
  return x.sizes().slice(2);
}

OnnxOutputs onnx_conv(const OnnxCall& c) {
  Tensor x = c.in(0);
  const Tensor& weight = c.in(1);
  const auto spatial = spatial_sizes(c, x);
  auto w = windows_of(c, spatial, weight.sizes().slice(2).vec(), false);
  if (!symmetric(w)) {
    x = padded(x, w, 0);
    std::ranges::fill(w.before, 0);
  }
  const Tensor bias = c.has(2) ? c.in(2) : Tensor();
  return {torch::convolution(x, weight, bias, w.strides, w.before, w.dilations, false,
                             std::vector<int64_t>(spatial.size(), 0), c.integer("group", 1))};
}

OnnxOutputs onnx_conv_transpose(const OnnxCall& c) {
  const Tensor &x = c.in(0), &weight = c.in(1);
  const auto spatial = spatial_sizes(c, x);
  const size_t n = spatial.size();
  const auto w = windows_of(c, spatial, weight.sizes().slice(2).vec(), false);
  auto extra = c.ints("output_padding", std::vector<int64_t>(n, 0));
  const auto asked = c.ints("output_shape");
  if (c.text("auto_pad", "NOTSET") != "NOTSET" || !asked.empty() || !symmetric(w))
    c.refuse("expected explicit and symmetric pads");
  return {torch::convolution(x, weight, c.has(2) ? c.in(2) : Tensor(), w.strides, w.before, w.dilations, true,
                             extra, c.integer("group", 1))};
}

Tensor max_pooled(const OnnxCall& c, Tensor x, Windows w) {
  x = padded(x, w, -std::numeric_limits<double>::infinity());
  switch (w.kernel.size()) {
    case 1:
      return torch::max_pool1d(x, w.kernel, w.strides, {0}, w.dilations);
    case 2:
      return torch::max_pool2d(x, w.kernel, w.strides, {0, 0}, w.dilations);
    case 3:
      return torch::max_pool3d(x, w.kernel, w.strides, {0, 0, 0}, w.dilations);
    default:
      c.refuse("expected one to three spatial axes");
  }
}

OnnxOutputs onnx_max_pool(const OnnxCall& c) {
  if (c.node.outputs.size() > 1) c.refuse("indices of the maxima are not supported");
  if (!c.in(0).is_floating_point()) c.refuse("expected floating-point images");
  const auto w =
      windows_of(c, spatial_sizes(c, c.in(0)), c.ints("kernel_shape"), c.integer("ceil_mode", 0) != 0);
  return {max_pooled(c, c.in(0), w)};
}

Tensor average_pooled(const OnnxCall& c, const Tensor& x, const Windows& w) {
  if (std::ranges::any_of(w.dilations, [](int64_t d) { return d != 1; }))
    c.refuse("dilated averages are not supported");
  switch (w.kernel.size()) {
    case 1:
      return torch::avg_pool1d(x, w.kernel, w.strides);
    case 2:
      return torch::avg_pool2d(x, w.kernel, w.strides);
    case 3:
      return torch::avg_pool3d(x, w.kernel, w.strides);
    default:
      c.refuse("expected one to three spatial axes");
  }
}

OnnxOutputs onnx_average_pool(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const auto exact = windows_of(c, spatial_sizes(c, x), c.ints("kernel_shape"), false);
  const auto w = windows_of(c, spatial_sizes(c, x), c.ints("kernel_shape"), c.integer("ceil_mode", 0) != 0);
  const Tensor sums = average_pooled(c, padded(x, w, 0), w);
  const bool plain = std::ranges::all_of(w.before, [](int64_t p) { return p == 0; }) &&
                     std::ranges::all_of(w.after, [](int64_t p) { return p == 0; });
  if (plain) return {sums};
  // The share of each window that counts: the image, and its explicit pads where they are included.
  Tensor counted = torch::ones_like(x.slice(0, 0, 1).slice(1, 0, 1));
  Windows rest = w;
  if (c.integer("count_include_pad", 0) != 0) {
    counted = padded(counted, exact, 1);
    for (size_t i = 0; i < w.before.size(); ++i) {
      rest.before[i] -= exact.before[i];
      rest.after[i] -= exact.after[i];
    }
  }
  return {sums / average_pooled(c, padded(counted, rest, 0), w)};
}

std::vector<int64_t> spatial_axes(const Tensor& x) {
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < x.dim(); ++i) axes.push_back(i);
  return axes;
}

OnnxOutputs onnx_global_average_pool(const OnnxCall& c) {
  spatial_sizes(c, c.in(0));
  return {c.in(0).mean(spatial_axes(c.in(0)), true)};
}
OnnxOutputs onnx_global_max_pool(const OnnxCall& c) {
  spatial_sizes(c, c.in(0));
  return {torch::amax(c.in(0), spatial_axes(c.in(0)), true)};
}

OnnxOutputs onnx_batch_norm(const OnnxCall& c) {
  if (c.integer("training_mode", 0) != 0)
    c.refuse("the file was exported in training mode; export it after eval()");
  return {torch::batch_norm(c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), false, 0.1, c.real("epsilon", 1e-5),
                            false)};
}

OnnxOutputs onnx_instance_norm(const OnnxCall& c) {
  return {torch::instance_norm(c.in(0), c.in(1), c.in(2), {}, {}, true, 0.1, c.real("epsilon", 1e-5), false)};
}

OnnxOutputs onnx_layer_norm(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t given = c.integer("axis", -1), axis = given < 0 ? given + x.dim() : given;
  if (axis < 0 || axis >= x.dim()) c.refuse(fmt::format("axis {} of {} axes", given, x.dim()));
  const auto shape = x.sizes().slice(static_cast<size_t>(axis)).vec();
  const double epsilon = c.real("epsilon", 1e-5);
  const Tensor weight = c.in(1).expand(shape), bias = c.has(2) ? c.in(2).expand(shape) : Tensor();
  if (c.node.outputs.size() < 2) return {torch::layer_norm(x, shape, weight, bias, epsilon)};
  const auto [out, mean, scale] = torch::native_layer_norm(x, shape, weight, bias, epsilon);
  return {out, mean, scale};
}

OnnxOutputs onnx_group_norm(const OnnxCall& c) {
  const int64_t groups = c.integer("num_groups", 1);
  const Tensor& x = c.in(0);
  Tensor weight = c.in(1), bias = c.in(2);
  if (weight.numel() == groups && x.size(1) != groups) {  // opset 18: one number for each group
    weight = weight.repeat_interleave(x.size(1) / groups);
    bias = bias.repeat_interleave(x.size(1) / groups);
  }
  return {torch::group_norm(x, groups, weight, bias, c.real("epsilon", 1e-5))};
}

OnnxOutputs onnx_lrn(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t size = c.integer("size", 1);
  const Tensor squares = x.square().flatten(2).unsqueeze(1);  // (N, 1, C, pixels)
  const Tensor around = torch::constant_pad_nd(squares, {0, 0, (size - 1) / 2, size / 2});
  const Tensor mean = torch::avg_pool2d(around, {size, 1}, {1, 1}).squeeze(1).view_as(x);
  return {x / (c.real("bias", 1) + c.real("alpha", 1e-4) * mean).pow(c.real("beta", 0.75))};
}

OnnxOutputs onnx_mean_variance_norm(const OnnxCall& c) {
  const auto axes = c.ints("axes", {0, 2, 3});
  const Tensor centered = c.in(0) - c.in(0).mean(axes, true);
  return {centered / (centered.square().mean(axes, true).sqrt() + 1e-9)};
}

// Image sizes by factors or by themselves, in the forms that libtorch has.
OnnxOutputs onnx_resize(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const bool old = c.node.op == "Upsample" || c.opset < 11;
  const size_t scales_at = old ? 1 : 2;
  if (x.dim() != 4) c.refuse(fmt::format("expected images (N, C, H, W), found {} axes", x.dim()));
  if (c.has("axes")) c.refuse("axes are not supported");
  std::vector<int64_t> sizes;
  if (!old && c.has(3) && c.in(3).numel() > 0) {
    sizes = c.ints(3);
  } else {
    const Tensor scales = c.in(scales_at).to(at::kDouble).contiguous();
    if (scales.numel() != 4) c.refuse("expected four scales");
    for (int64_t i = 0; i < 4; ++i) {
      const double size = static_cast<double>(x.size(i)) * scales.data_ptr<double>()[i];
      if (std::abs(size - std::round(size)) > 1e-3)
        c.refuse("scales that do not give whole sizes are not supported");
      sizes.push_back(std::llround(size));
    }
  }
  if (sizes.size() != 4 || sizes[0] != x.size(0) || sizes[1] != x.size(1))
    c.refuse("expected new sizes of H and W alone");
  check_onnx_size(c, sizes);
  const std::vector<int64_t> out = {sizes[2], sizes[3]};
  const std::string mode = c.text("mode", "nearest");
  const std::string rule = c.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  const bool corners = rule == "align_corners";
  const bool half = rule == "half_pixel" || rule == "pytorch_half_pixel";
  if (rule == "pytorch_half_pixel" && (out[0] == 1 || out[1] == 1))
    c.refuse("a single pixel is not supported");
  if (c.integer("antialias", 0) != 0) c.refuse("antialiasing is not supported");
  if (mode == "nearest" && rule == "asymmetric" &&
      (old || c.text("nearest_mode", "round_prefer_floor") == "floor"))
    return {torch::upsample_nearest2d(x, out)};
  if (mode == "linear" && (corners || half)) return {torch::upsample_bilinear2d(x, out, corners)};
  if (mode == "cubic" && (corners || half) && c.real("cubic_coeff_a", -0.75) == -0.75 &&
      c.integer("exclude_outside", 0) == 0)
    return {torch::upsample_bicubic2d(x, out, corners)};
  c.refuse(fmt::format("mode {} with coordinates {} is not supported", mode, rule));
}

constexpr OnnxOperator kLayers[] = {
    {"AveragePool", onnx_average_pool},
    {"BatchNormalization", onnx_batch_norm},
    {"Conv", onnx_conv},
    {"ConvTranspose", onnx_conv_transpose},
    {"Einsum", onnx_einsum},
    {"Gemm", onnx_gemm},
    {"GlobalAveragePool", onnx_global_average_pool},
    {"GlobalMaxPool", onnx_global_max_pool},
    {"GroupNormalization", onnx_group_norm},
    {"InstanceNormalization", onnx_instance_norm},
    {"LRN", onnx_lrn},
    {"LayerNormalization", onnx_layer_norm},
    {"MatMul", onnx_matmul},
    {"MaxPool", onnx_max_pool},
    {"MeanVarianceNormalization", onnx_mean_variance_norm},
    {"Resize", onnx_resize},
    {"Upsample", onnx_resize},
};

}  // namespace

std::span<const OnnxOperator> layer_operators() {
  return kLayers;
}

}  // namespace aha
