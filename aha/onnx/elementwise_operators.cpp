// Operators that work number by number, with broadcasting.
#include <cmath>
#include <functional>

#include "aha/onnx/operators.h"

namespace aha {
namespace {

// ONNX's element types by number (TensorProto.DataType); those of 16 bits are computed in float32.
at::ScalarType onnx_scalar_type(const OnnxCall& call, int64_t type) {
  switch (type) {
    case 1:
      return at::kFloat;
    case 2:
      return at::kByte;
    case 3:
      return at::kChar;
    case 5:
      return at::kShort;
    case 6:
      return at::kInt;
    case 7:
      return at::kLong;
    case 9:
      return at::kBool;
    case 10:
      return at::kHalf;
    case 11:
      return at::kDouble;
    case 16:
      return at::kBFloat16;
    default:
      call.refuse(fmt::format("ONNX type {} is not supported", type));
  }
}

Tensor cast_to(const Tensor& x, at::ScalarType type) {
  if (type == at::kHalf || type == at::kBFloat16) return x.to(at::kFloat).to(type).to(at::kFloat);
  return x.to(type);
}

template <Tensor (*Function)(const Tensor&)>
OnnxOutputs unary(const OnnxCall& c) {
  return {Function(c.in(0))};
}

template <Tensor (*Function)(const Tensor&, const Tensor&)>
OnnxOutputs binary(const OnnxCall& c) {
  return {Function(c.in(0), c.in(1))};
}

template <Tensor (*Function)(const Tensor&, const Tensor&)>
OnnxOutputs folded(const OnnxCall& c) {
  Tensor out = c.in(0);
  for (size_t i = 1; i < c.inputs.size(); ++i) out = Function(out, c.in(i));
  return {out};
}

Tensor onnx_add(const Tensor& a, const Tensor& b) {
  return a + b;
}
Tensor onnx_sub(const Tensor& a, const Tensor& b) {
  return a - b;
}
Tensor onnx_mul(const Tensor& a, const Tensor& b) {
  return a * b;
}
Tensor onnx_div(const Tensor& a, const Tensor& b) {
  return at::isIntegralType(a.scalar_type(), false) ? torch::div(a, b, "trunc") : a / b;
}
Tensor onnx_pow(const Tensor& a, const Tensor& b) {
  return torch::pow(a, b).to(a.scalar_type());
}

OnnxOutputs onnx_mod(const OnnxCall& c) {
  const bool as_c = c.integer("fmod", 0) != 0;
  return {as_c ? torch::fmod(c.in(0), c.in(1)) : torch::remainder(c.in(0), c.in(1))};
}

OnnxOutputs onnx_mean(const OnnxCall& c) {
  return {folded<onnx_add>(c)[0] / static_cast<double>(c.inputs.size())};
}

OnnxOutputs onnx_clip(const OnnxCall& c) {
  Tensor out = c.in(0);
  if (c.opset < 11) {
    const double low = c.real("min", -3.402823e38), high = c.real("max", 3.402823e38);
    return {torch::clamp(out, low, high)};
  }
  if (c.has(1)) out = torch::maximum(out, c.in(1).to(out.scalar_type()));
  if (c.has(2)) out = torch::minimum(out, c.in(2).to(out.scalar_type()));
  return {out};
}

OnnxOutputs onnx_cast(const OnnxCall& c) {
  return {cast_to(c.in(0), onnx_scalar_type(c, c.integer("to", 1)))};
}
OnnxOutputs onnx_cast_like(const OnnxCall& c) {
  return {cast_to(c.in(0), c.in(1).scalar_type())};
}

OnnxOutputs onnx_where(const OnnxCall& c) {
  return {torch::where(c.in(0).to(at::kBool), c.in(1), c.in(2))};
}

OnnxOutputs onnx_leaky_relu(const OnnxCall& c) {
  return {torch::leaky_relu(c.in(0), c.real("alpha", 0.01))};
}
OnnxOutputs onnx_elu(const OnnxCall& c) {
  return {torch::elu(c.in(0), c.real("alpha", 1))};
}
OnnxOutputs onnx_celu(const OnnxCall& c) {
  return {torch::celu(c.in(0), c.real("alpha", 1))};
}
OnnxOutputs onnx_selu(const OnnxCall& c) {
  const double alpha = c.real("alpha", 1.67326319217681884765625),
               gamma = c.real("gamma", 1.05070102214813232421875);
  return {gamma * torch::elu(c.in(0), alpha)};
}
OnnxOutputs onnx_thresholded_relu(const OnnxCall& c) {
  return {torch::threshold(c.in(0), c.real("alpha", 1), 0)};
}
Tensor clipped_line(const Tensor& x, double slope, double offset) {
  return torch::clamp(slope * x + offset, 0, 1);
}
OnnxOutputs onnx_hard_sigmoid(const OnnxCall& c) {
  const double alpha = c.real("alpha", 0.2), beta = c.real("beta", 0.5);
  const bool usual = std::abs(alpha - 1.0 / 6) < 1e-6 && beta == 0.5;
  return {usual ? torch::hardsigmoid(c.in(0)) : clipped_line(c.in(0), alpha, beta)};
}
OnnxOutputs onnx_hard_swish(const OnnxCall& c) {
  return {torch::hardswish(c.in(0))};
}
OnnxOutputs onnx_prelu(const OnnxCall& c) {
  return {torch::where(c.in(0) < 0, c.in(0) * c.in(1), c.in(0))};
}
OnnxOutputs onnx_gelu(const OnnxCall& c) {
  return {torch::gelu(c.in(0), c.text("approximate", "none"))};
}
OnnxOutputs onnx_shrink(const OnnxCall& c) {
  const double bias = c.real("bias", 0), limit = c.real("lambd", 0.5);
  const Tensor& x = c.in(0);
  return {torch::where(x < -limit, x + bias, torch::where(x > limit, x - bias, torch::zeros_like(x)))};
}
OnnxOutputs onnx_is_inf(const OnnxCall& c) {
  Tensor out = torch::zeros_like(c.in(0), at::kBool);
  if (c.integer("detect_negative", 1)) out = out | torch::isneginf(c.in(0));
  if (c.integer("detect_positive", 1)) out = out | torch::isposinf(c.in(0));
  return {out};
}

OnnxOutputs onnx_dropout(const OnnxCall& c) {
  // torchvision's Swin drops nothing, but in training mode.
  if (c.has(2) && c.in(2).item<bool>() && (c.has(1) ? c.number(1) : 0.5) > 0)
    c.refuse("the file was exported in training mode; export it after eval()");
  return {c.in(0), torch::ones_like(c.in(0), at::kBool)};
}

Tensor onnx_softsign(const Tensor& x) {
  return x / (1 + x.abs());
}
Tensor onnx_mish(const Tensor& x) {
  return x * torch::tanh(torch::softplus(x, 1, 1e30));
}
Tensor onnx_softplus(const Tensor& x) {
  return torch::softplus(x, 1, 1e30);
}
Tensor onnx_relu(const Tensor& x) {
  return torch::relu(x);
}
Tensor onnx_round(const Tensor& x) {
  return torch::round(x);
}
Tensor onnx_same(const Tensor& x) {
  return x;
}

constexpr OnnxOperator kElementwise[] = {
    {"Abs", unary<torch::abs>},
    {"Acos", unary<torch::acos>},
    {"Acosh", unary<torch::acosh>},
    {"Add", binary<onnx_add>},
    {"And", binary<torch::logical_and>},
    {"Asin", unary<torch::asin>},
    {"Asinh", unary<torch::asinh>},
    {"Atan", unary<torch::atan>},
    {"Atanh", unary<torch::atanh>},
    {"Cast", onnx_cast},
    {"CastLike", onnx_cast_like},
    {"Ceil", unary<torch::ceil>},
    {"Celu", onnx_celu},
    {"Clip", onnx_clip},
    {"Cos", unary<torch::cos>},
    {"Cosh", unary<torch::cosh>},
    {"Div", binary<onnx_div>},
    {"Dropout", onnx_dropout},
    {"Elu", onnx_elu},
    {"Equal", binary<torch::eq>},
    {"Erf", unary<torch::erf>},
    {"Exp", unary<torch::exp>},
    {"Floor", unary<torch::floor>},
    {"Gelu", onnx_gelu},
    {"Greater", binary<torch::gt>},
    {"GreaterOrEqual", binary<torch::ge>},
    {"HardSigmoid", onnx_hard_sigmoid},
    {"HardSwish", onnx_hard_swish},
    {"Identity", unary<onnx_same>},
    {"IsInf", onnx_is_inf},
    {"IsNaN", unary<torch::isnan>},
    {"LeakyRelu", onnx_leaky_relu},
    {"Less", binary<torch::lt>},
    {"LessOrEqual", binary<torch::le>},
    {"Log", unary<torch::log>},
    {"Max", folded<torch::maximum>},
    {"Mean", onnx_mean},
    {"Min", folded<torch::minimum>},
    {"Mish", unary<onnx_mish>},
    {"Mod", onnx_mod},
    {"Mul", binary<onnx_mul>},
    {"Neg", unary<torch::neg>},
    {"Not", unary<torch::logical_not>},
    {"Or", binary<torch::logical_or>},
    {"PRelu", onnx_prelu},
    {"Pow", binary<onnx_pow>},
    {"Reciprocal", unary<torch::reciprocal>},
    {"Relu", unary<onnx_relu>},
    {"Round", unary<onnx_round>},
    {"Selu", onnx_selu},
    {"Shrink", onnx_shrink},
    {"Sigmoid", unary<torch::sigmoid>},
    {"Sign", unary<torch::sign>},
    {"Sin", unary<torch::sin>},
    {"Sinh", unary<torch::sinh>},
    {"Softplus", unary<onnx_softplus>},
    {"Softsign", unary<onnx_softsign>},
    {"Sqrt", unary<torch::sqrt>},
    {"Sub", binary<onnx_sub>},
    {"Sum", folded<onnx_add>},
    {"Tan", unary<torch::tan>},
    {"Tanh", unary<torch::tanh>},
    {"ThresholdedRelu", onnx_thresholded_relu},
    {"Where", onnx_where},
    {"Xor", binary<torch::logical_xor>},
};

}  // namespace

std::span<const OnnxOperator> elementwise_operators() {
  return kElementwise;
}

}  // namespace aha
