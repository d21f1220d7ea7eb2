#include "aha/image/tiff.h"

#include <tiffio.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "aha/base/error.h"

namespace aha {
namespace {

// What libtiff reads from, and the first thing it complained of.
struct TiffMemory {
  Bytes bytes;
  uint64_t at = 0;
  std::string complaint = {};
};

tmsize_t tiff_read(thandle_t handle, void* to, tmsize_t count) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  if (memory.at >= memory.bytes.size()) return 0;
  const auto got = std::min<uint64_t>(count, memory.bytes.size() - memory.at);
  std::memcpy(to, memory.bytes.data() + memory.at, got);
  memory.at += got;
  return static_cast<tmsize_t>(got);
}

tmsize_t tiff_write(thandle_t, void*, tmsize_t) {
  return 0;
}

toff_t tiff_seek(thandle_t handle, toff_t offset, int from) {
  auto& memory = *static_cast<TiffMemory*>(handle);
  memory.at = from == SEEK_SET ? offset : (from == SEEK_CUR ? memory.at : memory.bytes.size()) + offset;
  return memory.at;
}

int tiff_close(thandle_t) {
  return 0;
}

toff_t tiff_size(thandle_t handle) {
  return static_cast<TiffMemory*>(handle)->bytes.size();
}

int tiff_complains(TIFF*, void* user, const char*, const char* format, va_list list) {
  auto& memory = *static_cast<TiffMemory*>(user);
  char text[200];
  if (memory.complaint.empty() && std::vsnprintf(text, sizeof text, format, list) > 0)
    memory.complaint = text;
  return 1;
}

int tiff_warns(TIFF*, void*, const char*, const char*, va_list) {
  return 1;
}

constexpr tmsize_t kMostTiffBytes = tmsize_t{1} << 30;

}  // namespace

bool is_tiff(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  return text.starts_with(std::string_view("II*\0", 4)) || text.starts_with(std::string_view("MM\0*", 4));
}

Decoded decode_tiff(Bytes bytes, std::string_view name, const ReadOptions& options) {
  TiffMemory memory{bytes};
  const auto refused = [&](std::string_view why) {
    return input_error("{}: cannot decode this TIFF: {}", printable(name, 300),
                       printable(memory.complaint.empty() ? why : memory.complaint, 200));
  };
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> open(TIFFOpenOptionsAlloc(),
                                                                              TIFFOpenOptionsFree);
  if (!open) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(open.get(), kMostTiffBytes);
  TIFFOpenOptionsSetErrorHandlerExtR(open.get(), tiff_complains, &memory);
  TIFFOpenOptionsSetWarningHandlerExtR(open.get(), tiff_warns, &memory);
  const std::unique_ptr<TIFF, decltype(&TIFFClose)> file(
      TIFFClientOpenExt("image", "rm", &memory, tiff_read, tiff_write, tiff_seek, tiff_close, tiff_size,
                        nullptr, nullptr, open.get()),
      TIFFClose);
  if (!file) throw refused("its header is damaged or incomplete");
  uint32_t width = 0, height = 0;
  TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height);
  check_image_size(width, height, name, options);

  TIFFRGBAImage reader{};
  char why[1024] = "";
  if (!TIFFRGBAImageOK(file.get(), why) || !TIFFRGBAImageBegin(&reader, file.get(), 1, why))
    throw refused(why);
  const std::unique_ptr<TIFFRGBAImage, decltype(&TIFFRGBAImageEnd)> end(&reader, TIFFRGBAImageEnd);
  Decoded decoded;
  decoded.orientation = reader.orientation;
  reader.req_orientation = reader.orientation;  // as stored; our own code turns it
  std::vector<uint32_t> raster(static_cast<size_t>(width) * height);
  if (!TIFFRGBAImageGet(&reader, raster.data(), width, height) || !memory.complaint.empty())
    throw refused("its data is damaged or incomplete");
  decoded.image = Image(static_cast<int>(width), static_cast<int>(height));
  for (size_t i = 0; i < raster.size(); ++i) {
    uint8_t* rgb = &decoded.image.rgb[3 * i];
    rgb[0] = TIFFGetR(raster[i]), rgb[1] = TIFFGetG(raster[i]), rgb[2] = TIFFGetB(raster[i]);
  }
  return decoded;
}

}  // namespace aha
