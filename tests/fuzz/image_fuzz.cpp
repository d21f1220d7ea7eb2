// Images and arrays from hostile bytes: the first byte chooses the reader, anything but an Error is a
// finding.
//
//   cmake --preset fuzz && ninja -C build/fuzz image_fuzz && build/fuzz/bin/image_fuzz
#include <cstdint>
#include <span>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/base/test_files.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/image/test_files.h"
#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace aha::test_files;
  const aha::Image small = test_image(9, 7);
  const std::vector<uint8_t> ink(8 * 8 * 4, 90), gray(8 * 8, 120);
  // What cameras write for "turned by 90 degrees": one entry, tag 0x112, of type short.
  const std::string exif("Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0", 32);
  const std::string array =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", std::string(8, '\0'));
  start_from(
      argc, argv,
      {"p" + png_bytes(small), "j" + jpeg_of(9, 7, 3, small.rgb, exif),
       "j" + jpeg_of(9, 7, 3, small.rgb, "", true), "j" + jpeg_of(8, 8, 1, gray), "j" + jpeg_of(8, 8, 4, ink),
       "w" + webp_of(small, false), "w" + webp_of(small, true), "n" + array});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  try {
    if (data[0] == 'n')
      aha::npy_from_bytes(bytes, "fuzz");
    else
      aha::image_from_bytes(bytes, "fuzz", {.max_megapixels = 0.25});
  } catch (const aha::Error&) {
  }
  return 0;
}
