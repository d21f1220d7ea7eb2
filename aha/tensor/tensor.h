// Where libtorch enters. Headers include this; sources get all of torch from the precompiled header.
#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <string_view>

#include "aha/base/context.h"
#include "aha/image/image.h"
#include "aha/weights/tensor_table.h"

namespace aha {

using Tensor = at::Tensor;

// Any size is allowed where -1 stands. Input error: "map: expected shape [B, 224, 224], found [1, 32, 32]".
void check_shape(const Tensor& tensor, std::initializer_list<int64_t> expected, std::string_view what);

at::Device torch_device(const Context& context);

// Our own copy in the stored type, or as float32.
Tensor tensor_from_view(const TensorView& view);
Tensor float_tensor_from_view(const TensorView& view);
// Contiguous CPU bytes of a tensor; the view keeps the tensor alive.
TensorView view_from_tensor(const Tensor& tensor);

// (3, H, W) in [0, 1], and back with rounding and clamping.
Tensor tensor_from_image(const Image& image);
Image image_from_tensor(const Tensor& pixels);

// Threads of the team and of libtorch, denormals, device check. Called once by each program after start-up.
void start_compute(const Context& context);

}  // namespace aha
