#include "aha/image/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <vector>

#include <jpeglib.h>  // needs <cstdio> before it

#include "aha/base/error.h"
#include "aha/image/exif.h"

namespace aha {
namespace {

// A progressive file may repeat scans without end; real encoders write about ten. Past this it is an attack
// on the clock.
constexpr int kMostScans = 200;

// libjpeg reports errors by a call that must not return. It longjmps into the member function that called the
// library; those functions hold no object with a destructor, so that nothing is skipped.
class JpegDecoder {
 public:
  explicit JpegDecoder(Bytes bytes) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { self(info).fail(); };
    errors_.emit_message = [](j_common_ptr, int) {};
    errors_.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = [](j_common_ptr info) {
      JpegDecoder& decoder = self(info);
      if (decoder.info_.input_scan_number <= kMostScans) return;
      std::snprintf(decoder.message_, sizeof decoder.message_, "more than %d scans", kMostScans);
      std::longjmp(decoder.escape_, 1);
    };
    source_.next_input_byte = octets(bytes);
    source_.bytes_in_buffer = bytes.size();
    source_.init_source = [](j_decompress_ptr) {};
    source_.fill_input_buffer = [](j_decompress_ptr info) -> boolean { self(info).fail_truncated(); };
    source_.skip_input_data = [](j_decompress_ptr info, long count) {
      if (count <= 0) return;
      if (static_cast<unsigned long>(count) > info->src->bytes_in_buffer) self(info).fail_truncated();
      info->src->next_input_byte += count;
      info->src->bytes_in_buffer -= static_cast<size_t>(count);
    };
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.term_source = [](j_decompress_ptr) {};
  }
  ~JpegDecoder() {
    if (created_) jpeg_destroy_decompress(&info_);
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Each step is false where the library refused; message() says why.
  bool read_header() {
    if (setjmp(escape_)) return false;
    jpeg_create_decompress(&info_);
    created_ = true;
    info_.src = &source_;
    info_.progress = &progress_;
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&info_, TRUE);
    return true;
  }
  bool start(J_COLOR_SPACE output) {
    if (setjmp(escape_)) return false;
    info_.out_color_space = output;
    jpeg_start_decompress(&info_);
    return true;
  }
  bool read_row(uint8_t* row) {
    if (setjmp(escape_)) return false;
    JSAMPROW rows[] = {row};
    jpeg_read_scanlines(&info_, rows, 1);
    return true;
  }

  const jpeg_decompress_struct& info() const { return info_; }
  const char* message() const { return message_; }

 private:
  template <class Info>
  static JpegDecoder& self(Info info) {
    return *static_cast<JpegDecoder*>(info->client_data);
  }
  [[noreturn]] void fail() {
    info_.err->format_message(reinterpret_cast<j_common_ptr>(&info_), message_);
    std::longjmp(escape_, 1);
  }
  [[noreturn]] void fail_truncated() {
    std::snprintf(message_, sizeof message_, "the file ends too early");
    std::longjmp(escape_, 1);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf escape_{};
  char message_[JMSG_LENGTH_MAX] = "";
  bool created_ = false;
};

int orientation_of(const jpeg_decompress_struct& info) {
  for (auto* marker = info.marker_list; marker; marker = marker->next) {
    const Bytes data = std::as_bytes(std::span(marker->data, marker->data_length));
    if (text_of(data).starts_with(std::string_view("Exif\0", 5))) return orientation_from_exif(data);
  }
  return 1;
}

// a * b / 255, rounded.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Adobe stores 255 - ink: light = paper left by black, minus the share that the ink takes of it.
void rgb_from_inverted_cmyk(const uint8_t* cmyk, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<uint8_t>(cmyk[3] - scaled(255 - cmyk[c], cmyk[3]));
}

void rgb_from_gray(const uint8_t* gray, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, rgb += 3) rgb[0] = rgb[1] = rgb[2] = gray[x];
}

}  // namespace

bool is_jpeg(Bytes bytes) {
  return text_of(bytes).starts_with("\xFF\xD8\xFF");
}

Decoded decode_jpeg(Bytes bytes, std::string_view name, const ReadOptions& options) {
  JpegDecoder decoder(bytes);
  const auto refused = [&] {
    return input_error("{}: cannot decode this JPEG: {}", printable(name, 300), decoder.message());
  };
  if (!decoder.read_header()) throw refused();
  const auto& info = decoder.info();
  check_image_size(info.image_width, info.image_height, name, options);
  const int components = info.num_components;
  if (components != 1 && components != 3 && components != 4)
    throw input_error("{}: expected 1, 3 or 4 color components, found {}", printable(name, 300), components);
  // Huffman coding spends at least one bit on a block of 64 pixels: a file below that does not hold its
  // image, and no memory is taken for it.
  const uint64_t least_bytes = uint64_t{info.image_width} * info.image_height / 512;
  if (!info.arith_code && bytes.size() < least_bytes)
    throw input_error("{}: expected compressed data for {} x {} pixels, found {} bytes", printable(name, 300),
                      info.image_width, info.image_height, bytes.size());
  if (!decoder.start(components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK)) throw refused();

  Decoded decoded{Image(static_cast<int>(info.image_width), static_cast<int>(info.image_height)),
                  orientation_of(info)};
  Image& image = decoded.image;
  std::vector<uint8_t> row(components == 3 ? 0 : static_cast<size_t>(image.width) * components);
  for (int y = 0; y < image.height; ++y) {
    if (!decoder.read_row(components == 3 ? image.row(y) : row.data())) throw refused();
    if (components == 1) rgb_from_gray(row.data(), image.width, image.row(y));
    if (components == 4) rgb_from_inverted_cmyk(row.data(), image.width, image.row(y));
  }
  return decoded;
}

}  // namespace aha
