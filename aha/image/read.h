// Images from files: JPEG, PNG, WebP, GIF, TIFF, AVIF and BMP, recognized by their content, never by their
// name.
//
// The pixels are those of Pillow 9.4's ImageOps.exif_transpose(Image.open(f)).convert("RGB"), bit for bit: no
// color management, gray is replicated, alpha is dropped, CMYK is taken as Adobe writes it (inverted),
// 16-bit color keeps its high byte, an animation gives its first frame. Where it differs from Pillow: 16-bit
// gray keeps its high byte too (Pillow's conversion saturates everything above 255), transparent colors of a
// TIFF are darkened by their alpha, AVIF is read at all. A file that ends too early is an error, not a
// half-gray image. Sizes are checked from the headers, before memory is taken.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "aha/image/image.h"

namespace aha {

struct ReadOptions {
  double max_megapixels = 100;    // larger images are refused: a few bytes can claim gigapixels
  bool apply_orientation = true;  // turn and mirror as the EXIF tag says
};

// "-" = standard input.
Image read_image(const std::string& path, const ReadOptions& options = {});

// `name` opens the message of a refusal.
Image image_from_bytes(std::span<const std::byte> bytes, std::string_view name,
                       const ReadOptions& options = {});

}  // namespace aha
