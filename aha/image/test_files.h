// Images and arrays as files made on the spot, for tests and as seeds of fuzzers.
#pragma once

#include <avif/avif.h>
#include <gif_lib.h>
#include <tiffio.h>
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

// Two colors, `white` where the red of the image is above 127.
inline std::string gif_of(const Image& image, bool interlaced) {
  std::string file;
  const auto append = [](GifFileType* gif, const GifByteType* from, int count) {
    static_cast<std::string*>(gif->UserData)->append(reinterpret_cast<const char*>(from), count);
    return count;
  };
  int error = 0;
  GifFileType* gif = EGifOpen(&file, append, &error);
  const GifColorType colors[] = {{10, 20, 30}, {200, 210, 220}};
  ColorMapObject* map = GifMakeMapObject(2, colors);
  EGifPutScreenDesc(gif, image.width, image.height, 1, 0, map);
  EGifPutImageDesc(gif, 0, 0, image.width, image.height, interlaced, nullptr);
  std::vector<int> lines;
  if (!interlaced)
    for (int y = 0; y < image.height; ++y) lines.push_back(y);
  else
    for (const auto& [first, step] : {std::pair(0, 8), std::pair(4, 8), std::pair(2, 4), std::pair(1, 2)})
      for (int y = first; y < image.height; y += step) lines.push_back(y);
  for (const int y : lines)
    for (int x = 0; x < image.width; ++x)
      EGifPutPixel(gif, static_cast<GifPixelType>(image.row(y)[3 * x] > 127));
  EGifCloseFile(gif, &error);
  GifFreeMapObject(map);
  return file;
}

inline std::string tiff_of(const Image& image, uint16_t compression) {
  char path[] = "/tmp/aha_tiff_XXXXXX";
  const int handle = ::mkstemp(path);
  TIFF* tiff = TIFFFdOpen(handle, path, "w");
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, static_cast<uint32_t>(image.width));
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, static_cast<uint32_t>(image.height));
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
  for (int y = 0; y < image.height; ++y)
    TIFFWriteScanline(tiff, const_cast<uint8_t*>(image.row(y)), static_cast<uint32_t>(y), 0);
  TIFFClose(tiff);
  std::string file;
  if (std::FILE* in = std::fopen(path, "rb")) {
    for (int c; (c = std::fgetc(in)) != EOF;) file.push_back(static_cast<char>(c));
    std::fclose(in);
  }
  std::remove(path);
  return file;
}

// Lossless; turned to the left `turns` times by its container.
inline std::string avif_of(const Image& image, int turns = 0) {
  avifImage* frame = avifImageCreate(image.width, image.height, 8, AVIF_PIXEL_FORMAT_YUV444);
  frame->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_IDENTITY;
  if (turns > 0) {
    frame->transformFlags = AVIF_TRANSFORM_IROT;
    frame->irot.angle = static_cast<uint8_t>(turns);
  }
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, frame);
  rgb.format = AVIF_RGB_FORMAT_RGB;
  rgb.depth = 8;
  rgb.pixels = const_cast<uint8_t*>(image.rgb.data());
  rgb.rowBytes = image.width * 3;
  avifImageRGBToYUV(frame, &rgb);
  avifEncoder* encoder = avifEncoderCreate();
  encoder->minQuantizer = encoder->maxQuantizer = AVIF_QUANTIZER_LOSSLESS;
  encoder->speed = AVIF_SPEED_FASTEST;
  avifRWData out = AVIF_DATA_EMPTY;
  avifEncoderWrite(encoder, frame, &out);
  std::string file(reinterpret_cast<char*>(out.data), out.size);
  avifRWDataFree(&out);
  avifEncoderDestroy(encoder);
  avifImageDestroy(frame);
  return file;
}

// 24 bits a pixel, lines from the bottom.
inline std::string bmp_of(const Image& image) {
  std::string file(54, '\0');
  const auto put = [&](size_t at, uint32_t value, int size) {
    for (int i = 0; i < size; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
  };
  file.replace(0, 2, "BM");
  put(10, 54, 4), put(14, 40, 4), put(18, image.width, 4), put(22, image.height, 4), put(26, 1, 2),
      put(28, 24, 2);
  for (int y = image.height - 1; y >= 0; --y) {
    for (int x = 0; x < image.width; ++x)
      for (int c = 2; c >= 0; --c) file.push_back(static_cast<char>(image.row(y)[3 * x + c]));
    while ((file.size() - 54) % 4 != 0) file.push_back('\0');
  }
  return file;
}

}  // namespace aha::test_files
