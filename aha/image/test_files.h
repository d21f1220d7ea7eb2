// Images and arrays as files made on the spot, for tests and as seeds of fuzzers.
#pragma once

#include <webp/encode.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <jpeglib.h>  // needs <cstdio> before it

#include "aha/base/rng.h"
#include "aha/image/image.h"

namespace aha::test_files {

inline Image test_image(int width, int height) {
  Image image(width, height);
  Rng rng(5);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width * 3; ++x) image.row(y)[x] = static_cast<uint8_t>(4 * y + 2 * x + rng.below(32));
  return image;
}

// libjpeg in the other direction: components 1 (gray), 3 or 4 (CMYK), with an APP1 block where given.
inline std::string jpeg_of(int width, int height, int components, const std::vector<uint8_t>& samples,
                           const std::string& exif = "", bool progressive = false) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = components;
  info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (!exif.empty())
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  for (int y = 0; y < height; ++y) {
    auto* row = const_cast<JSAMPLE*>(samples.data() + static_cast<size_t>(y) * width * components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return file;
}

inline std::string webp_of(const Image& image, bool lossless) {
  uint8_t* buffer = nullptr;
  const size_t size =
      lossless ? WebPEncodeLosslessRGB(image.rgb.data(), image.width, image.height, image.width * 3, &buffer)
               : WebPEncodeRGB(image.rgb.data(), image.width, image.height, image.width * 3, 90, &buffer);
  std::string file(reinterpret_cast<char*>(buffer), size);
  WebPFree(buffer);
  return file;
}

}  // namespace aha::test_files
