#include "aha/image/exif.h"

#include <cstring>

namespace aha {
namespace {

// Numbers of a TIFF block in its own byte order.
class TiffReader {
 public:
  TiffReader(Bytes bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}
  bool holds(uint64_t at, uint64_t size) const { return at <= bytes_.size() && size <= bytes_.size() - at; }
  uint32_t number(uint64_t at, int size) const {
    uint32_t value = 0;
    for (int i = 0; i < size; ++i)
      value = value << 8 | byte_at(bytes_, at + (big_endian_ ? i : size - 1 - i));
    return value;
  }

 private:
  Bytes bytes_;
  bool big_endian_;
};

}  // namespace

int orientation_from_exif(Bytes exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  if (text_of(exif).starts_with(kPrefix)) exif = exif.subspan(kPrefix.size());
  const std::string_view order = text_of(exif).substr(0, 2);
  if (exif.size() < 8 || (order != "II" && order != "MM")) return 1;
  const TiffReader tiff(exif, order == "MM");
  if (tiff.number(2, 2) != 42) return 1;
  const uint64_t directory = tiff.number(4, 4);
  if (!tiff.holds(directory, 2)) return 1;
  const uint64_t entries = tiff.number(directory, 2);
  for (uint64_t i = 0; i < entries; ++i) {
    // tag, type, count, value: 2 + 2 + 4 + 4 bytes
    const uint64_t entry = directory + 2 + 12 * i;
    if (!tiff.holds(entry, 12)) return 1;
    if (tiff.number(entry, 2) != 0x0112) continue;
    const uint32_t type = tiff.number(entry + 2, 2);
    const int size = type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0;  // BYTE, SHORT, LONG
    if (size == 0 || tiff.number(entry + 4, 4) != 1) return 1;
    const uint32_t orientation = tiff.number(entry + 8, size);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  // An upright pixel (x, y) comes from (x, y), mirrored in either axis, of the transposed image where the
  // sides change places.
  const bool transpose = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const int width = transpose ? image.height : image.width, height = transpose ? image.width : image.height;
  Image result(width, height);
  for (int y = 0; y < height; ++y) {
    uint8_t* to = result.row(y);
    for (int x = 0; x < width; ++x, to += 3) {
      int from_x = transpose ? y : x, from_y = transpose ? x : y;
      if (mirror_x) from_x = image.width - 1 - from_x;
      if (mirror_y) from_y = image.height - 1 - from_y;
      std::memcpy(to, image.row(from_y) + static_cast<size_t>(from_x) * 3, 3);
    }
  }
  return result;
}

}  // namespace aha
