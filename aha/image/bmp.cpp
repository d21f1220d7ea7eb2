#include "aha/image/bmp.h"

#include <array>
#include <bit>

#include "aha/base/error.h"

namespace aha {
namespace {

constexpr size_t kFileHeader = 14;

// A color of a pixel: these bits of it, scaled to 0..255.
struct Channel {
  uint32_t mask;
  uint8_t of(uint32_t pixel) const {
    if (mask == 0) return 0;
    const int shift = std::countr_zero(mask);
    const uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
    return static_cast<uint8_t>((value * 255 + most / 2) / most);
  }
};

}  // namespace

bool is_bmp(Bytes bytes) {
  return text_of(bytes).starts_with("BM") && bytes.size() >= kFileHeader + 12;
}

Decoded decode_bmp(Bytes bytes, std::string_view name, const ReadOptions& options) {
  const auto refused = [&](std::string_view why) {
    return input_error("{}: cannot decode this BMP: {}", printable(name, 300), why);
  };
  const auto number = [&](uint64_t at, int size) {
    if (at + size > bytes.size()) throw refused("it ends too early");
    uint32_t value = 0;
    for (int i = size - 1; i >= 0; --i) value = value << 8 | byte_at(bytes, at + i);
    return value;
  };
  const uint64_t pixels_at = number(10, 4), header = number(14, 4);
  if (header < 40) throw refused("its header is that of OS/2; convert it to PNG");
  const auto width = static_cast<int32_t>(number(18, 4)), signed_height = static_cast<int32_t>(number(22, 4));
  const bool top_down = signed_height < 0;
  const int64_t height = std::abs(static_cast<int64_t>(signed_height));
  check_image_size(width, height, name, options);
  const uint32_t bits = number(28, 2), compression = number(30, 4);
  constexpr uint32_t kPlain = 0, kBitFields = 3;
  if (compression != kPlain && compression != kBitFields)
    throw refused("it is compressed; convert it to PNG");
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32)
    throw refused("expected 1, 4, 8, 16, 24 or 32 bits a pixel");
  const uint64_t stride = (static_cast<uint64_t>(width) * bits + 31) / 32 * 4;
  if (pixels_at + stride * height > bytes.size()) throw refused("it ends too early");

  std::array<Channel, 3> channels = bits == 16 ? std::array<Channel, 3>{{{0x7c00}, {0x3e0}, {0x1f}}}
                                               : std::array<Channel, 3>{{{0xff0000}, {0xff00}, {0xff}}};
  if (compression == kBitFields)
    for (int c = 0; c < 3; ++c) channels[c].mask = number(kFileHeader + 40 + 4 * c, 4);
  const uint64_t palette_at = kFileHeader + header;
  const uint32_t said = number(46, 4), colors = bits > 8                          ? 0
                                                : said > 0 && said < (1u << bits) ? said
                                                                                  : 1u << bits;
  if (colors > 0) number(palette_at + 4 * colors - 4, 4);  // it is there

  Decoded decoded;
  decoded.image = Image(width, static_cast<int>(height));
  for (int64_t y = 0; y < height; ++y) {
    const uint64_t row = pixels_at + stride * (top_down ? y : height - 1 - y);
    uint8_t* rgb = decoded.image.row(static_cast<int>(y));
    for (int64_t x = 0; x < width; ++x, rgb += 3) {
      const uint64_t bit = static_cast<uint64_t>(x) * bits;
      if (bits <= 8) {
        const uint32_t index = byte_at(bytes, row + bit / 8) >> (8 - bits - bit % 8) & ((1u << bits) - 1);
        for (int c = 0; c < 3; ++c)
          rgb[c] = index < colors ? byte_at(bytes, palette_at + 4 * index + (2 - c)) : 0;
      } else if (bits == 24) {
        for (int c = 0; c < 3; ++c) rgb[c] = byte_at(bytes, row + bit / 8 + (2 - c));
      } else {
        const uint32_t pixel = number(row + bit / 8, static_cast<int>(bits / 8));
        for (int c = 0; c < 3; ++c) rgb[c] = channels[c].of(pixel);
      }
    }
  }
  return decoded;
}

}  // namespace aha
