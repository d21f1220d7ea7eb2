#include "aha/tensor/tensor.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/startup.h"

namespace aha {
namespace {

// In the order of DType.
constexpr at::ScalarType kScalarTypes[] = {at::kBool, at::kByte, at::kChar,     at::kShort, at::kInt,
                                           at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble};

DType dtype_from_scalar_type(at::ScalarType type) {
  const auto* found = std::ranges::find(kScalarTypes, type);
  if (found == std::end(kScalarTypes))
    throw input_error("a tensor of type {} cannot be stored in a weight file", c10::toString(type));
  return static_cast<DType>(found - std::begin(kScalarTypes));
}

std::string text_from_expected(std::initializer_list<int64_t> expected) {
  std::vector<std::string> sizes;
  for (const int64_t size : expected) sizes.push_back(size < 0 ? "any" : std::to_string(size));
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace

void check_shape(const Tensor& tensor, std::initializer_list<int64_t> expected, std::string_view what) {
  if (!tensor.defined())
    throw input_error("{}: expected shape {}, found no tensor", what, text_from_expected(expected));
  const auto sizes = tensor.sizes();
  const bool fits = std::ranges::equal(sizes, expected,
                                       [](int64_t found, int64_t size) { return size < 0 || found == size; });
  if (!fits)
    throw input_error("{}: expected shape {}, found {}", what, text_from_expected(expected),
                      text_from_shape({sizes.data(), sizes.size()}));
}

at::Device torch_device(const Context& context) {
  if (!context.device.cuda) return at::Device(at::kCPU);
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(context.device.index));
}

Tensor tensor_from_view(const TensorView& view) {
  // empty + memcpy instead of from_blob: the bytes of a mapped file need not be aligned for their type.
  Tensor tensor = torch::empty(view.shape, torch::dtype(kScalarTypes[static_cast<size_t>(view.dtype)]));
  if (tensor.nbytes() != view.bytes.size())
    throw input_error("tensor of shape {} and type {}: expected {} bytes, found {}",
                      text_from_shape(view.shape), name_of(view.dtype), tensor.nbytes(), view.bytes.size());
  if (!view.bytes.empty()) std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

Tensor float_tensor_from_view(const TensorView& view) {
  return tensor_from_view(view).to(at::kFloat);
}

TensorView view_from_tensor(const Tensor& tensor) {
  const auto kept = std::make_shared<Tensor>(tensor.detach().to(at::kCPU).contiguous());
  TensorView view;
  view.dtype = dtype_from_scalar_type(kept->scalar_type());
  view.shape = kept->sizes().vec();
  view.bytes = {static_cast<const std::byte*>(kept->data_ptr()), kept->nbytes()};
  view.owner = kept;
  return view;
}

Tensor tensor_from_image(const Image& image) {
  const auto bytes =
      torch::from_blob(const_cast<uint8_t*>(image.rgb.data()), {image.height, image.width, 3}, at::kByte);
  return bytes.permute({2, 0, 1}).to(at::kFloat).contiguous().div_(255.0);  // (3, H, W)
}

Image image_from_tensor(const Tensor& pixels) {
  check_shape(pixels, {3, -1, -1}, "pixels");
  const auto bytes = pixels.detach()
                         .to(at::kCPU, at::kFloat)
                         .mul(255.0)
                         .round_()
                         .clamp_(0, 255)
                         .permute({1, 2, 0})
                         .to(at::kByte)
                         .contiguous();
  Image image(static_cast<int>(pixels.size(2)), static_cast<int>(pixels.size(1)));
  std::memcpy(image.rgb.data(), bytes.data_ptr(), image.rgb.size());
  return image;
}

void start_compute(const Context& context) {
  set_threads(context.threads);
  at::set_num_threads(threads());
  set_openblas_threads(threads());
  at::globalContext().setFlushDenormal(true);
  flush_denormals();
  if (!context.device.cuda) return;
  if (!at::hasCUDA())
    throw input_error("--device {}: this libtorch has no CUDA; available: cpu",
                      text_from_device(context.device));
  const int present = static_cast<int>(torch::cuda::device_count());
  if (context.device.index >= present)
    throw input_error("--device {}: found {} CUDA device(s); available: cpu{}",
                      text_from_device(context.device), present,
                      present > 0 ? fmt::format(", cuda:0..cuda:{}", present - 1) : "");
}

}  // namespace aha
