// Pictures and arrays from hostile bytes: the first byte chooses the reader, anything but an Error is a
// finding.
//
//   cmake --preset fuzz && ninja -C build/fuzz image_fuzz && build/fuzz/bin/image_fuzz -max_len=20000 CORPUS
#include <cstdint>
#include <span>

#include "aha/base/error.h"
#include "aha/image/npy.h"
#include "aha/image/read.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  try {
    switch (data[0]) {
      case 'n':
        aha::npy_from_bytes(bytes, "fuzz");
        break;
      case 'z':
        aha::npz_from_bytes(bytes, "fuzz");
        break;
      default:
        aha::image_from_bytes(bytes, "fuzz", {.max_megapixels = 0.25});
    }
  } catch (const aha::Error&) {
  }
  return 0;
}
