#include "aha/image/gif.h"

#include <gif_lib.h>

#include <cstring>
#include <memory>
#include <vector>

#include "aha/base/error.h"

namespace aha {
namespace {

struct CloseGif {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};

int read_from_memory(GifFileType* file, GifByteType* to, int count) {
  auto& rest = *static_cast<Bytes*>(file->UserData);
  const size_t got = std::min(rest.size(), static_cast<size_t>(count));
  std::memcpy(to, rest.data(), got);
  rest = rest.subspan(got);
  return static_cast<int>(got);
}

}  // namespace

bool is_gif(Bytes bytes) {
  return text_of(bytes).starts_with("GIF87a") || text_of(bytes).starts_with("GIF89a");
}

Decoded decode_gif(Bytes bytes, std::string_view name, const ReadOptions& options) {
  const auto refused = [&](std::string_view why) {
    return input_error("{}: cannot decode this GIF: {}", printable(name, 300), why);
  };
  Bytes rest = bytes;
  int error = 0;
  const std::unique_ptr<GifFileType, CloseGif> file(DGifOpen(&rest, read_from_memory, &error));
  if (!file) throw refused("its header is damaged or incomplete");
  const auto check = [&](int status) {
    if (status != GIF_ERROR) return;
    const char* why = GifErrorString(file->Error);
    throw refused(why ? why : "unknown error");
  };
  check_image_size(file->SWidth, file->SHeight, name, options);
  // A code of 12 bits stands for 4,096 pixels at most: a smaller file does not hold its image.
  if (static_cast<int64_t>(file->SWidth) * file->SHeight / 4096 > static_cast<int64_t>(bytes.size()))
    throw refused("it is too short for its size");

  int transparent = 0;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    check(DGifGetRecordType(file.get(), &type));
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    if (type != EXTENSION_RECORD_TYPE) throw refused("it has no image");
    int code = 0;
    GifByteType* block = nullptr;
    check(DGifGetExtension(file.get(), &code, &block));
    if (GraphicsControlBlock control{}; block && code == GRAPHICS_EXT_FUNC_CODE && block[0] == 4 &&
                                        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK &&
                                        control.TransparentColor >= 0)
      transparent = control.TransparentColor;
    while (block) check(DGifGetExtensionNext(file.get(), &block));
  }
  check(DGifGetImageDesc(file.get()));
  const GifImageDesc& frame = file->Image;
  const ColorMapObject* colors = frame.ColorMap ? frame.ColorMap : file->SColorMap;
  if (!colors) throw refused("it has no colors");
  if (frame.Left < 0 || frame.Top < 0 || frame.Width < 1 || frame.Height < 1 ||
      frame.Left + frame.Width > file->SWidth || frame.Top + frame.Height > file->SHeight)
    throw refused("its frame is not on the canvas");

  const auto put = [&](int index, uint8_t* rgb) {
    const GifColorType color = index < colors->ColorCount ? colors->Colors[index] : GifColorType{};
    rgb[0] = color.Red, rgb[1] = color.Green, rgb[2] = color.Blue;
  };
  Decoded decoded;
  decoded.image = Image(file->SWidth, file->SHeight);
  Image& image = decoded.image;
  for (size_t i = 0; i < image.rgb.size(); i += 3) put(transparent, &image.rgb[i]);
  std::vector<GifPixelType> line(static_cast<size_t>(frame.Width));
  struct Pass {
    int first, step;
  };
  const std::vector<Pass> passes =
      frame.Interlace ? std::vector<Pass>{{0, 8}, {4, 8}, {2, 4}, {1, 2}} : std::vector<Pass>{{0, 1}};
  for (const auto& [first, step] : passes)
    for (int y = first; y < frame.Height; y += step) {
      check(DGifGetLine(file.get(), line.data(), frame.Width));
      uint8_t* to = image.row(frame.Top + y) + 3 * frame.Left;
      for (int x = 0; x < frame.Width; ++x) put(line[x], to + 3 * x);
    }
  return decoded;
}

}  // namespace aha
