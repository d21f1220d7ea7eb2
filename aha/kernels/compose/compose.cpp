#include "aha/kernels/compose/compose.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

void check_count(std::string_view what, int64_t expected, int64_t found) {
  if (expected != found) throw input_error("{}: expected {} values, found {}", what, expected, found);
}

}  // namespace

PatchSource::PatchSource(const PatchGeometry& geometry, std::span<const float> image,
                         std::span<const float> reference, std::span<const int32_t> region, int64_t regions)
    : geometry_(geometry), regions_(regions) {
  const int patch = geometry.patch, width = geometry.width;
  if (patch <= 0 || geometry.height <= 0 || width <= 0 || geometry.height % patch != 0 || width % patch != 0)
    throw input_error("patches: expected an image of whole patches of {} pixels, found {} x {}", patch,
                      geometry.height, width);
  const int64_t pixels = int64_t{geometry.height} * width;
  check_count("pixels of the image", 3 * pixels, static_cast<int64_t>(image.size()));
  check_count("pixels of the reference", 3 * pixels, static_cast<int64_t>(reference.size()));
  check_count("regions of the pixels", pixels, static_cast<int64_t>(region.size()));
  for (int32_t index : region)
    if (index < 0 || index >= regions)
      throw input_error("region of a pixel: expected 0..{}, found {}", regions - 1, index);

  base_ = AlignedBuffer<float>(geometry.patches() * padded_columns());
  difference_ = AlignedBuffer<float>(geometry.patches() * padded_columns());
  region_ = AlignedBuffer<int32_t>(geometry.patches() * padded_area());
  const int64_t across = width / patch;
  const bool perturbed = image.data() != reference.data();
  // A line of a patch at a time, so that the divisions run in vectors.
  const auto lay_out = [&](int64_t p, int y) {
    const int64_t pixel = (p / across * patch + y) * width + p % across * patch, within = int64_t{y} * patch;
    std::copy_n(region.data() + pixel, patch, region_.data() + p * padded_area() + within);
    for (int c = 0; c < 3; ++c) {
      const int64_t to = p * padded_columns() + c * area() + within;
      const float *shown = image.data() + c * pixels + pixel, *hidden = reference.data() + c * pixels + pixel;
      const double mean = geometry.mean[c], std = geometry.std[c];
      float *base = base_.data() + to, *difference = difference_.data() + to;
      for (int x = 0; x < patch; ++x) base[x] = static_cast<float>((double{hidden[x]} - mean) / std);
      if (!perturbed) continue;  // zeros are there
      for (int x = 0; x < patch; ++x)
        difference[x] = static_cast<float>((double{shown[x]} - double{hidden[x]}) / std);
    }
  };
  constexpr double kOfAPixel = 100;  // operations
  shared_ranges(geometry.patches(), 1, kOfAPixel * static_cast<double>(pixels),
                [&](int64_t first, int64_t end) {
                  for (int64_t p = first; p < end; ++p)
                    for (int y = 0; y < patch; ++y) lay_out(p, y);
                });
}

void compose(const KernelSet& kernels, const PatchSource& source, std::span<const float> keep,
             int64_t first_row, Activations& rows) {
  check_count("keep", source.regions(), static_cast<int64_t>(keep.size()));
  if (rows.format() != kernels.format || rows.columns() != source.geometry().columns() || first_row < 0 ||
      first_row + source.geometry().tokens() > rows.rows())
    throw input_error("patch rows: expected rows {}..{} of {} {} columns, found {} rows of {} {} columns",
                      first_row, first_row + source.geometry().tokens() - 1, source.geometry().columns(),
                      name_of(kernels.format), rows.rows(), rows.columns(), name_of(rows.format()));
  kernels.compose(source, keep.data(), first_row, rows);
}

void compose_backward(const KernelSet& kernels, const PatchSource& source, const float* gradient,
                      int64_t stride, std::span<float> d_keep) {
  check_count("d_keep", source.regions(), static_cast<int64_t>(d_keep.size()));
  if (stride < source.padded_columns())
    throw input_error("patch gradient: expected rows at least {} apart, found {}", source.padded_columns(),
                      stride);
  kernels.compose_backward(source, gradient, stride, d_keep.data());
}

}  // namespace aha
