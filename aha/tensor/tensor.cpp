#include "aha/tensor/tensor.h"

#include <cstring>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/startup.h"

namespace aha {
namespace {

at::ScalarType scalar_type_from_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return at::kBool;
    case DType::kU8:
      return at::kByte;
    case DType::kI8:
      return at::kChar;
    case DType::kI16:
      return at::kShort;
    case DType::kI32:
      return at::kInt;
    case DType::kI64:
      return at::kLong;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF32:
      return at::kFloat;
    case DType::kF64:
      return at::kDouble;
  }
  throw input_error("tensor of an unknown element type");
}

DType dtype_from_scalar_type(at::ScalarType type) {
  switch (type) {
    case at::kBool:
      return DType::kBool;
    case at::kByte:
      return DType::kU8;
    case at::kChar:
      return DType::kI8;
    case at::kShort:
      return DType::kI16;
    case at::kInt:
      return DType::kI32;
    case at::kLong:
      return DType::kI64;
    case at::kHalf:
      return DType::kF16;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kFloat:
      return DType::kF32;
    case at::kDouble:
      return DType::kF64;
    default:
      throw input_error("a tensor of type {} cannot be stored in a weight file", c10::toString(type));
  }
}

std::string text_from_expected(std::initializer_list<int64_t> expected) {
  std::string text = "[";
  for (const int64_t size : expected) {
    if (text.size() > 1) text += ", ";
    text += size < 0 ? "any" : std::to_string(size);
  }
  return text + "]";
}

}  // namespace

void check_shape(const Tensor& tensor, std::initializer_list<int64_t> expected, std::string_view what) {
  if (!tensor.defined())
    throw input_error("{}: expected shape {}, found no tensor", what, text_from_expected(expected));
  const auto sizes = tensor.sizes();
  bool fits = sizes.size() == expected.size();
  size_t axis = 0;
  for (const int64_t size : expected) {
    if (!fits) break;
    fits = size < 0 || sizes[axis] == size;
    ++axis;
  }
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
  Tensor tensor = torch::empty(view.shape, torch::dtype(scalar_type_from_dtype(view.dtype)));
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
