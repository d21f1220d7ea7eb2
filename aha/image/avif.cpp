#include "aha/image/avif.h"

#include <avif/avif.h>

#include <algorithm>
#include <memory>

#include "aha/base/error.h"

namespace aha {
namespace {

// The container rotates first and mirrors then; EXIF has a number for every outcome.
int exif_orientation(const avifImage& image) {
  const int turns =
      image.transformFlags & AVIF_TRANSFORM_IROT ? image.irot.angle : 0;  // 90 degrees, to the left
  if (!(image.transformFlags & AVIF_TRANSFORM_IMIR)) return std::array{1, 8, 3, 6}[turns & 3];
  return image.imir.mode == 0 ? std::array{4, 5, 2, 7}[turns & 3] : std::array{2, 7, 4, 5}[turns & 3];
}

}  // namespace

bool is_avif(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (text.size() < 16 || text.substr(4, 4) != "ftyp") return false;
  const avifROData data{octets(bytes), bytes.size()};
  return avifPeekCompatibleFileType(&data);
}

Decoded decode_avif(Bytes bytes, std::string_view name, const ReadOptions& options) {
  const std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)> decoder(avifDecoderCreate(),
                                                                            avifDecoderDestroy);
  if (!decoder) throw std::bad_alloc();
  const auto check = [&](avifResult result) {
    if (result != AVIF_RESULT_OK)
      throw input_error("{}: cannot decode this AVIF: {}", printable(name, 300), avifResultToString(result));
  };
  decoder->ignoreExif = decoder->ignoreXMP = AVIF_TRUE;
  decoder->maxThreads = 1;
  check(avifDecoderSetIOMemory(decoder.get(), octets(bytes), bytes.size()));
  check(avifDecoderParse(decoder.get()));
  check_image_size(decoder->image->width, decoder->image->height, name, options);
  check(avifDecoderNextImage(decoder.get()));
  Decoded decoded;
  decoded.orientation = exif_orientation(*decoder->image);
  decoded.image = Image(static_cast<int>(decoder->image->width), static_cast<int>(decoder->image->height));
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, decoder->image);
  rgb.format = AVIF_RGB_FORMAT_RGB;
  rgb.depth = 8;
  rgb.ignoreAlpha = AVIF_TRUE;
  rgb.pixels = decoded.image.rgb.data();
  rgb.rowBytes = decoder->image->width * 3;
  check(avifImageYUVToRGB(decoder->image, &rgb));
  return decoded;
}

}  // namespace aha
