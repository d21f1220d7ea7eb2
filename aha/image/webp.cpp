#include "aha/image/webp.h"

#include <webp/decode.h>
#include <webp/encode.h>

#include <memory>
#include <optional>

#include "aha/base/error.h"
#include "aha/image/exif.h"

namespace aha {
namespace {

uint32_t little_endian_at(Bytes bytes, size_t at, int size) {
  uint32_t value = 0;
  for (int i = size - 1; i >= 0; --i) value = value << 8 | byte_at(bytes, at + static_cast<size_t>(i));
  return value;
}

// The chunks of the RIFF container that matter here.
struct Container {
  std::optional<Bytes> canvas;       // VP8X: flags, canvas size
  std::optional<Bytes> first_frame;  // ANMF: place, size, then the frame's own chunks
  std::optional<Bytes> exif;
};

Container container_of(Bytes bytes) {
  Container found;
  constexpr size_t kRiffHeader = 12, kChunkHeader = 8;
  size_t at = kRiffHeader;
  while (at <= bytes.size() && bytes.size() - at >= kChunkHeader) {
    const std::string_view type = text_of(bytes.subspan(at, 4));
    const size_t size = little_endian_at(bytes, at + 4, 4);
    at += kChunkHeader;
    if (size > bytes.size() - at) break;
    const Bytes content = bytes.subspan(at, size);
    if (type == "VP8X" && size >= 10 && !found.canvas) found.canvas = content;
    if (type == "ANMF" && size >= 16 && !found.first_frame) found.first_frame = content;
    if (type == "EXIF" && !found.exif) found.exif = content;
    at += size + size % 2;  // chunks start at even places
  }
  return found;
}

}  // namespace

bool is_webp(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  return text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP";
}

Decoded decode_webp(Bytes bytes, std::string_view name, const ReadOptions& options) {
  const auto refused = [&](std::string_view why) {
    return input_error("{}: cannot decode this WebP: {}", printable(name, 300), why);
  };
  const Container container = container_of(bytes);
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(octets(bytes), bytes.size(), &features) != VP8_STATUS_OK)
    throw refused("its header is damaged or incomplete");
  check_image_size(features.width, features.height, name, options);

  Bytes frame = bytes;
  int left = 0, top = 0;
  if (features.has_animation) {
    if (!container.canvas || !container.first_frame) throw refused("the animation has no frame");
    const Bytes head = *container.first_frame;
    left = static_cast<int>(little_endian_at(head, 0, 3)) * 2;
    top = static_cast<int>(little_endian_at(head, 3, 3)) * 2;
    frame = head.subspan(16);
  }
  WebPBitstreamFeatures inner{};
  if (WebPGetFeatures(octets(frame), frame.size(), &inner) != VP8_STATUS_OK)
    throw refused("the frame is damaged or incomplete");
  if (inner.has_animation || left > features.width - inner.width || top > features.height - inner.height)
    throw refused("the frame lies outside the canvas");

  Decoded decoded{Image(features.width, features.height), 1};
  if (container.exif) decoded.orientation = orientation_from_exif(*container.exif);
  Image& image = decoded.image;
  const size_t offset = (static_cast<size_t>(top) * image.width + left) * 3;
  if (!WebPDecodeRGBInto(octets(frame), frame.size(), image.rgb.data() + offset, image.rgb.size() - offset,
                         image.width * 3))
    throw refused("the data is damaged or ends too early");
  return decoded;
}

std::string webp_bytes(const Image& image, float quality) {
  if (image.width < 1 || image.height < 1 || image.width > WEBP_MAX_DIMENSION ||
      image.height > WEBP_MAX_DIMENSION)
    throw input_error("WebP: expected an image of 1..{} pixels a side, found {} x {}", WEBP_MAX_DIMENSION,
                      image.width, image.height);
  uint8_t* encoded = nullptr;
  const size_t size =
      WebPEncodeRGB(image.rgb.data(), image.width, image.height, image.width * 3, quality, &encoded);
  const std::unique_ptr<uint8_t, decltype(&WebPFree)> owner(encoded, WebPFree);
  if (size == 0) throw work_error("WebP: cannot encode {} x {} pixels", image.width, image.height);
  return std::string(reinterpret_cast<const char*>(encoded), size);
}

}  // namespace aha
