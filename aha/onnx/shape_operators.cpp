// Operators that move numbers without changing them, and those that compute with shapes.
#include "aha/onnx/operators.h"

namespace aha {
namespace {

int64_t axis_of(const OnnxCall& c, int64_t axis, int64_t dims) {
  if (axis < -dims || axis >= dims) c.refuse(fmt::format("axis {} of {} axes", axis, dims));
  return axis < 0 ? axis + dims : axis;
}

Tensor longs(const std::vector<int64_t>& values) {
  return torch::tensor(values, at::kLong);
}

OnnxOutputs onnx_shape(const OnnxCall& c) {
  const auto sizes = c.in(0).sizes().vec();
  const auto n = static_cast<int64_t>(sizes.size());
  const auto place = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t first = place(c.integer("start", 0)), last = place(c.integer("end", n));
  return {longs(sizes).slice(0, first, std::max(first, last))};
}
OnnxOutputs onnx_size(const OnnxCall& c) {
  return {torch::tensor(c.in(0).numel(), at::kLong)};
}

OnnxOutputs onnx_reshape(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  auto shape = c.ints("shape", 1).value_or(std::vector<int64_t>());
  int64_t known = 1;
  bool open = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && c.integer("allowzero", 0) == 0) {
      if (static_cast<int64_t>(i) >= x.dim()) c.refuse("expected an axis of the input where the shape has 0");
      shape[i] = x.size(static_cast<int64_t>(i));
    }
    open |= shape[i] < 0;
    known *= shape[i] < 0 ? 1 : shape[i];
  }
  // Exported for one image, asked about several.
  if (c.batch > 1 && !shape.empty() && shape[0] == 1 &&
      (open ? x.size(0) == c.batch : known * c.batch == x.numel()))
    shape[0] = c.batch;
  return {x.reshape(shape)};
}

OnnxOutputs onnx_flatten(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t given = c.integer("axis", 1), axis = given < 0 ? given + x.dim() : given;
  if (axis < 0 || axis > x.dim()) c.refuse(fmt::format("axis {} of {} axes", given, x.dim()));
  int64_t rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows *= x.size(i);
  return {x.reshape({rows, rows == 0 ? 0 : x.numel() / rows})};
}

OnnxOutputs onnx_transpose(const OnnxCall& c) {
  auto order = c.ints("perm");
  if (order.empty())
    for (int64_t i = c.in(0).dim(); i-- > 0;) order.push_back(i);
  return {c.in(0).permute(order)};
}

OnnxOutputs onnx_squeeze(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const auto axes = c.ints("axes", 1);
  std::vector<bool> gone(static_cast<size_t>(x.dim()), false);
  if (axes)
    for (const int64_t axis : *axes) gone[static_cast<size_t>(axis_of(c, axis, x.dim()))] = true;
  std::vector<int64_t> shape;
  for (int64_t i = 0; i < x.dim(); ++i)
    if (axes ? !gone[static_cast<size_t>(i)] : x.size(i) != 1) shape.push_back(x.size(i));
  return {x.reshape(shape)};
}

OnnxOutputs onnx_unsqueeze(const OnnxCall& c) {
  auto axes = c.ints("axes", 1).value_or(std::vector<int64_t>());
  const int64_t dims = c.in(0).dim() + static_cast<int64_t>(axes.size());
  for (auto& axis : axes) axis = axis_of(c, axis, dims);
  std::ranges::sort(axes);
  Tensor out = c.in(0);
  for (const int64_t axis : axes) out = out.unsqueeze(axis);
  return {out};
}

OnnxOutputs onnx_concat(const OnnxCall& c) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < c.inputs.size(); ++i) parts.push_back(c.in(i));
  const int64_t axis = axis_of(c, c.integer("axis", 0), parts.at(0).dim());
  // Exported for one image, asked about several: what does not depend on the image, a class token, is
  // repeated.
  if (c.batch > 1 && axis != 0)
    for (auto& part : parts)
      if (part.dim() > 0 && part.size(0) == 1) {
        auto shape = part.sizes().vec();
        for (const auto& other : parts) shape[0] = std::max(shape[0], other.size(0));
        part = part.expand(shape);
      }
  return {torch::cat(parts, axis)};
}

OnnxOutputs onnx_split(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c, c.integer("axis", 0), x.dim()), all = x.size(axis);
  const auto parts = static_cast<int64_t>(c.node.outputs.size());
  auto sizes = c.ints("split", 1).value_or(std::vector<int64_t>());
  if (sizes.empty()) {  // equal parts, the last one may be smaller
    const int64_t each = (all + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp<int64_t>(all - i * each, 0, each));
  }
  if (static_cast<int64_t>(sizes.size()) != parts)
    c.refuse(fmt::format("{} sizes for {} outputs", sizes.size(), parts));
  return torch::split_with_sizes(x, sizes, axis);
}

OnnxOutputs onnx_slice(const OnnxCall& c) {
  const auto starts = c.ints("starts", 1), ends = c.ints("ends", 2);
  auto axes = c.ints("axes", 3).value_or(std::vector<int64_t>());
  const auto steps = c.has(4) ? c.ints(size_t{4}) : std::vector<int64_t>();
  if (!starts || !ends || starts->size() != ends->size()) c.refuse("expected as many starts as ends");
  if (axes.empty())
    for (size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (axes.size() != starts->size() || (!steps.empty() && steps.size() != axes.size()))
    c.refuse("expected as many axes and steps as starts");
  Tensor out = c.in(0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axis_of(c, axes[i], out.dim()), n = out.size(axis),
                  step = steps.empty() ? 1 : steps[i];
    if (step == 0) c.refuse("expected a step other than 0");
    if (step > 0) {
      const auto place = [n](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + n : p, 0, n); };
      const int64_t first = place((*starts)[i]);
      out = out.slice(axis, first, std::max(first, place((*ends)[i])), step);
      continue;
    }
    // Backwards from `start` down to, and without, `end`.
    const auto place = [n](int64_t p) {
      return std::clamp<int64_t>(p < -n ? -1 : p < 0 ? p + n : p, -1, n - 1);
    };
    std::vector<int64_t> picked;
    for (int64_t p = place((*starts)[i]); p > place((*ends)[i]); p += std::max(step, -n - 1))
      picked.push_back(p);
    out = out.index_select(axis, longs(picked));
  }
  return {out};
}

Tensor counted_from_zero(const Tensor& indices, int64_t n) {
  const Tensor i = indices.to(at::kLong);
  return torch::where(i < 0, i + n, i);
}

OnnxOutputs onnx_gather(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t axis = axis_of(c, c.integer("axis", 0), x.dim());
  const Tensor indices = counted_from_zero(c.in(1), x.size(axis));
  auto shape = x.sizes().slice(0, static_cast<size_t>(axis)).vec();
  for (const int64_t size : indices.sizes()) shape.push_back(size);
  for (int64_t i = axis + 1; i < x.dim(); ++i) shape.push_back(x.size(i));
  check_onnx_size(c, shape);
  return {x.index_select(axis, indices.flatten()).reshape(shape)};
}

OnnxOutputs onnx_gather_elements(const OnnxCall& c) {
  const int64_t axis = axis_of(c, c.integer("axis", 0), c.in(0).dim());
  return {torch::gather(c.in(0), axis, counted_from_zero(c.in(1), c.in(0).size(axis)))};
}

OnnxOutputs onnx_gather_nd(const OnnxCall& c) {
  if (c.integer("batch_dims", 0) != 0) c.refuse("batch_dims are not supported");
  const auto parts = c.in(1).to(at::kLong).unbind(-1);
  return {c.in(0).index(
      c10::List<c10::optional<Tensor>>(std::vector<c10::optional<Tensor>>(parts.begin(), parts.end())))};
}

OnnxOutputs onnx_scatter_nd(const OnnxCall& c) {
  if (c.text("reduction", "none") != "none") c.refuse("reductions are not supported");
  const auto parts = c.in(1).to(at::kLong).unbind(-1);
  const c10::List<c10::optional<Tensor>> places(
      std::vector<c10::optional<Tensor>>(parts.begin(), parts.end()));
  return {c.in(0).index_put(places, c.in(2))};
}

OnnxOutputs onnx_scatter_elements(const OnnxCall& c) {
  if (c.text("reduction", "none") != "none") c.refuse("reductions are not supported");
  const int64_t axis = axis_of(c, c.integer("axis", 0), c.in(0).dim());
  return {c.in(0).scatter(axis, counted_from_zero(c.in(1), c.in(0).size(axis)), c.in(2))};
}

OnnxOutputs onnx_expand(const OnnxCall& c) {
  auto shape = c.ints(size_t{1});
  const auto sizes = c.in(0).sizes();
  // Sizes of 1 in the shape leave the input's own.
  while (shape.size() < sizes.size()) shape.insert(shape.begin(), 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    auto& size = shape[shape.size() - sizes.size() + i];
    if (size == 1) size = sizes[i];
  }
  check_onnx_size(c, shape);
  return {c.in(0).expand(shape)};
}

OnnxOutputs onnx_tile(const OnnxCall& c) {
  const auto repeats = c.ints(size_t{1});
  if (static_cast<int64_t>(repeats.size()) != c.in(0).dim())
    c.refuse("expected one number of repeats for each axis");
  auto shape = c.in(0).sizes().vec();
  for (size_t i = 0; i < shape.size(); ++i)
    if (repeats[i] < 0 || __builtin_mul_overflow(shape[i], repeats[i], &shape[i]))
      c.refuse("too many repeats");
  check_onnx_size(c, shape);
  return {c.in(0).repeat(repeats)};
}

OnnxOutputs onnx_pad(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const std::string mode = c.text("mode", "constant");
  const auto given = c.ints("pads", 1).value_or(std::vector<int64_t>());
  const auto dims = x.dim();
  std::vector<int64_t> before(static_cast<size_t>(dims), 0), after = before, shape = x.sizes().vec();
  std::vector<int64_t> axes = c.has(3) ? c.ints(size_t{3}) : std::vector<int64_t>();
  if (axes.empty())
    for (int64_t i = 0; i < dims; ++i) axes.push_back(i);
  if (given.size() != 2 * axes.size())
    c.refuse(fmt::format("expected {} pads, found {}", 2 * axes.size(), given.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axis_of(c, axes[i], dims));
    before[axis] = given[i];
    after[axis] = given[axes.size() + i];
    if (__builtin_add_overflow(shape[axis], before[axis], &shape[axis]) ||
        __builtin_add_overflow(shape[axis], after[axis], &shape[axis]))
      c.refuse("pads are too large");
  }
  check_onnx_size(c, shape);
  if (mode == "constant") {
    std::vector<int64_t> pads;  // last axis first
    for (size_t i = before.size(); i-- > 0;) pads.insert(pads.end(), {before[i], after[i]});
    const double value = c.opset < 11 ? c.real("value", 0) : c.has(2) ? c.number(2) : 0;
    return {torch::constant_pad_nd(x, pads, value)};
  }
  if (mode != "reflect" && mode != "edge") c.refuse(fmt::format("mode {} is not supported", mode));
  Tensor out = x;  // axis by axis: the numbers of the padded axis by index
  for (int64_t axis = 0; axis < dims; ++axis) {
    const int64_t n = x.size(axis), a = before[static_cast<size_t>(axis)],
                  b = after[static_cast<size_t>(axis)];
    if (a == 0 && b == 0) continue;
    std::vector<int64_t> picked;
    for (int64_t p = -a; p < n + b; ++p) {
      int64_t q = mode == "edge" ? std::clamp<int64_t>(p, 0, n - 1)
                  : p < 0        ? -p
                  : p >= n       ? 2 * (n - 1) - p
                                 : p;
      if (q < 0 || q >= n) c.refuse("expected reflecting pads below the size");
      picked.push_back(q);
    }
    out = out.index_select(axis, longs(picked));
  }
  return {out};
}

OnnxOutputs onnx_constant(const OnnxCall& c) {
  if (const auto value = c.tensor("value")) return {*value};
  if (c.has("value_int")) return {torch::tensor(c.integer("value_int", 0), at::kLong)};
  if (c.has("value_float")) return {torch::tensor(c.real("value_float", 0), at::kFloat)};
  if (c.has("value_ints")) return {longs(c.ints("value_ints"))};
  if (c.has("value_floats")) return {torch::tensor(c.reals("value_floats"), at::kFloat)};
  c.refuse("expected a constant of numbers");
}

OnnxOutputs onnx_constant_of_shape(const OnnxCall& c) {
  const auto shape = c.ints(size_t{0});
  check_onnx_size(c, shape);
  const Tensor value = c.tensor("value").value_or(torch::zeros({1}));
  if (value.numel() != 1) c.refuse("expected one number as value");
  return {value.reshape({}).expand(shape)};
}

OnnxOutputs onnx_range(const OnnxCall& c) {
  const double first = c.number(0), limit = c.number(1), step = c.number(2);
  const double count = std::ceil((limit - first) / step);
  if (step == 0 || !std::isfinite(count)) c.refuse("expected a range that ends");
  check_onnx_size(c, {static_cast<int64_t>(std::clamp(count, 0.0, 1e18))});
  const auto numbers = torch::arange(std::max<int64_t>(0, static_cast<int64_t>(count)), at::kDouble);
  return {(numbers * step + first).to(c.in(0).scalar_type())};
}

OnnxOutputs onnx_depth_to_space(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t b = c.integer("blocksize", 1), N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  if (b < 1 || C % (b * b) != 0) c.refuse("expected channels for whole blocks");
  if (c.text("mode", "DCR") == "CRD")
    return {x.reshape({N, C / (b * b), b, b, H, W})
                .permute({0, 1, 4, 2, 5, 3})
                .reshape({N, C / (b * b), H * b, W * b})};
  return {x.reshape({N, b, b, C / (b * b), H, W})
              .permute({0, 3, 4, 1, 5, 2})
              .reshape({N, C / (b * b), H * b, W * b})};
}

OnnxOutputs onnx_space_to_depth(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t b = c.integer("blocksize", 1), N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3);
  if (b < 1 || H % b != 0 || W % b != 0) c.refuse("expected whole blocks");
  return {x.reshape({N, C, H / b, b, W / b, b})
              .permute({0, 3, 5, 1, 2, 4})
              .reshape({N, C * b * b, H / b, W / b})};
}

OnnxOutputs onnx_trilu(const OnnxCall& c) {
  const auto k = c.has(1) ? static_cast<int64_t>(std::clamp(c.number(1), -1e9, 1e9)) : 0;
  return {c.integer("upper", 1) != 0 ? torch::triu(c.in(0), k) : torch::tril(c.in(0), k)};
}

OnnxOutputs onnx_one_hot(const OnnxCall& c) {
  const auto depth = static_cast<int64_t>(c.number(1));
  const Tensor& values = c.in(2);
  auto shape = c.in(0).sizes().vec();
  const int64_t axis = axis_of(c, c.integer("axis", -1), c.in(0).dim() + 1);
  shape.insert(shape.begin() + axis, depth);
  check_onnx_size(c, shape);
  std::vector<int64_t> along(shape.size(), 1);
  along[static_cast<size_t>(axis)] = depth;
  const Tensor hot = counted_from_zero(c.in(0), depth).unsqueeze(axis) == torch::arange(depth).view(along);
  return {torch::where(hot, values[1], values[0])};
}

OnnxOutputs onnx_non_zero(const OnnxCall& c) {
  return {torch::nonzero(c.in(0)).t().contiguous()};
}

OnnxOutputs onnx_eye_like(const OnnxCall& c) {
  if (c.in(0).dim() != 2 || c.has("dtype")) c.refuse("expected a matrix, and its own type");
  const int64_t rows = c.in(0).size(0), columns = c.in(0).size(1);
  const Tensor diagonal = torch::arange(columns) - torch::arange(rows).unsqueeze(1) == c.integer("k", 0);
  return {diagonal.to(c.in(0).scalar_type())};
}

constexpr OnnxOperator kShapes[] = {
    {"Concat", onnx_concat},
    {"Constant", onnx_constant},
    {"ConstantOfShape", onnx_constant_of_shape},
    {"DepthToSpace", onnx_depth_to_space},
    {"Expand", onnx_expand},
    {"EyeLike", onnx_eye_like},
    {"Flatten", onnx_flatten},
    {"Gather", onnx_gather},
    {"GatherElements", onnx_gather_elements},
    {"GatherND", onnx_gather_nd},
    {"NonZero", onnx_non_zero},
    {"OneHot", onnx_one_hot},
    {"Pad", onnx_pad},
    {"Range", onnx_range},
    {"Reshape", onnx_reshape},
    {"ScatterElements", onnx_scatter_elements},
    {"ScatterND", onnx_scatter_nd},
    {"Shape", onnx_shape},
    {"Size", onnx_size},
    {"Slice", onnx_slice},
    {"SpaceToDepth", onnx_space_to_depth},
    {"Split", onnx_split},
    {"Squeeze", onnx_squeeze},
    {"Tile", onnx_tile},
    {"Transpose", onnx_transpose},
    {"Trilu", onnx_trilu},
    {"Unsqueeze", onnx_unsqueeze},
};

}  // namespace

std::span<const OnnxOperator> shape_operators() {
  return kShapes;
}

}  // namespace aha
