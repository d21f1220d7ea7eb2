#include "aha/onnx/operators.h"

#include "aha/base/error.h"

namespace aha {
namespace {

template <class T>
const T* attribute_of(const OnnxNode& node, const char* name) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
}

template <class T>
T attribute_or(const OnnxCall& call, const char* name, T otherwise) {
  if (const T* value = attribute_of<T>(call.node, name)) return *value;
  if (call.has(name)) call.refuse(fmt::format("attribute {} is of another type than the operator's", name));
  return otherwise;
}

const std::map<std::string, const OnnxOperator*>& operators_by_name() {
  static const auto all = [] {
    std::map<std::string, const OnnxOperator*> found;
    for (const auto group :
         {elementwise_operators(), layer_operators(), reduction_operators(), shape_operators()})
      for (const auto& one : group) found.emplace(one.name, &one);
    return found;
  }();
  return all;
}

}  // namespace

const Tensor& OnnxCall::in(size_t i) const {
  if (!has(i)) refuse(fmt::format("expected an input {}, found {} inputs", i, inputs.size()));
  return inputs[i];
}

std::vector<int64_t> OnnxCall::ints(size_t i) const {
  const Tensor values = in(i).to(at::kLong).contiguous().flatten();
  constexpr int64_t kMostSizes = 1 << 20;
  if (values.numel() > kMostSizes) refuse(fmt::format("input {} has too many numbers for a shape", i));
  return {values.data_ptr<int64_t>(), values.data_ptr<int64_t>() + values.numel()};
}

double OnnxCall::number(size_t i) const {
  if (in(i).numel() != 1) refuse(fmt::format("input {}: expected one number, found {}", i, in(i).numel()));
  return in(i).to(at::kDouble).item<double>();
}

int64_t OnnxCall::integer(const char* name, int64_t otherwise) const {
  return attribute_or(*this, name, otherwise);
}
double OnnxCall::real(const char* name, double otherwise) const {
  return attribute_or(*this, name, otherwise);
}
std::string OnnxCall::text(const char* name, const std::string& otherwise) const {
  return attribute_or(*this, name, otherwise);
}
std::vector<int64_t> OnnxCall::ints(const char* name, std::vector<int64_t> otherwise) const {
  return attribute_or(*this, name, std::move(otherwise));
}
std::vector<double> OnnxCall::reals(const char* name) const {
  return attribute_or(*this, name, std::vector<double>());
}

std::optional<Tensor> OnnxCall::tensor(const char* name) const {
  const auto* found = attribute_of<TensorView>(node, name);
  return found ? std::optional(tensor_from_onnx(*found)) : std::nullopt;
}

std::optional<std::vector<int64_t>> OnnxCall::ints(const char* name, size_t input) const {
  if (has(name)) return ints(name);
  if (has(input)) return ints(input);
  return std::nullopt;
}

void OnnxCall::refuse(const std::string& what) const {
  throw input_error("{}", what);
}

Tensor tensor_from_onnx(const TensorView& view) {
  const Tensor tensor = tensor_from_view(view);
  const bool narrow = view.dtype == DType::kF16 || view.dtype == DType::kBF16;
  return narrow ? tensor.to(at::kFloat) : tensor;
}

const OnnxOperator* onnx_operator(const std::string& name) {
  const auto found = operators_by_name().find(name);
  return found == operators_by_name().end() ? nullptr : found->second;
}

std::vector<std::string> onnx_operator_names() {
  std::vector<std::string> names;
  for (const auto& [name, record] : operators_by_name()) names.push_back(name);
  return names;
}

void check_onnx_size(const OnnxCall& call, const std::vector<int64_t>& shape) {
  constexpr int64_t kMost = int64_t{1} << 28;
  int64_t numel = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(numel, size, &numel) || numel > kMost)
      call.refuse(fmt::format("a result of more than {} numbers, or of a negative size", kMost));
}

}  // namespace aha
