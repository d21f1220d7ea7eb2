#include "aha/image/read.h"

#include <atomic>
#include <iostream>
#include <iterator>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/image/avif.h"
#include "aha/image/bmp.h"
#include "aha/image/codec.h"
#include "aha/image/exif.h"
#include "aha/image/gif.h"
#include "aha/image/jpeg.h"
#include "aha/image/pixel_limit.h"
#include "aha/image/png.h"
#include "aha/image/tiff.h"
#include "aha/image/webp.h"

namespace aha {
namespace {

struct Codec {
  bool (*recognizes)(Bytes);
  Decoded (*decode)(Bytes, std::string_view name, const ReadOptions&);
};

constexpr Codec kCodecs[] = {
    {is_jpeg, decode_jpeg}, {is_png, decode_png},   {is_webp, decode_webp}, {is_gif, decode_gif},
    {is_tiff, decode_tiff}, {is_avif, decode_avif}, {is_bmp, decode_bmp},
};

// What a file that we cannot read looks like, for the message.
std::string description(Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  const std::string_view text = text_of(bytes);
  if (text.substr(0, 12).find("ftyp") == 4)
    return "an ISO media file (HEIC or video); convert it to JPEG or PNG";
  return "something else (it starts with '" + printable(text.substr(0, 8)) + "')";
}

std::atomic<double> g_max_megapixels = 0;  // 0 = what the options say

}  // namespace

void set_max_megapixels(double megapixels) {
  g_max_megapixels = megapixels;
}

void check_image_size(int64_t width, int64_t height, std::string_view name, const ReadOptions& options) {
  constexpr int64_t kLongestSide = int64_t{1} << 20;
  if (width < 1 || height < 1)
    throw input_error("{}: expected at least one pixel, found {} x {}", printable(name, 300), width, height);
  if (width > kLongestSide || height > kLongestSide)
    throw input_error("{}: expected sides of at most {}, found {} x {}", printable(name, 300), kLongestSide,
                      width, height);
  const double megapixels = static_cast<double>(width) * static_cast<double>(height) * 1e-6;
  const double most = g_max_megapixels > 0 ? g_max_megapixels.load() : options.max_megapixels;
  if (megapixels > most)
    throw input_error("{}: expected at most {} megapixels (--max-megapixels), found {} x {} = {:.1f}",
                      printable(name, 300), most, width, height, megapixels);
}

Image image_from_bytes(Bytes bytes, std::string_view name, const ReadOptions& options) {
  for (const Codec& codec : kCodecs) {
    if (!codec.recognizes(bytes)) continue;
    Decoded decoded = codec.decode(bytes, name, options);
    return options.apply_orientation ? upright(std::move(decoded.image), decoded.orientation)
                                     : std::move(decoded.image);
  }
  throw input_error("{}: expected a JPEG, PNG, WebP, GIF, TIFF, AVIF or BMP image, found {}",
                    printable(name, 300), description(bytes));
}

Image read_image(const std::string& path, const ReadOptions& options) {
  if (path == "-") {
    const std::string bytes(std::istreambuf_iterator<char>(std::cin), {});
    return image_from_bytes(std::as_bytes(std::span(bytes)), "stdin", options);
  }
  const MappedFile file(path);
  return image_from_bytes(file.bytes(), path, options);
}

}  // namespace aha
