// TensorBoard's event files: scalars over steps.
//
// A file is a row of TFRecords: length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the
// data; all little-endian. Each data block is an Event in protocol-buffer wire format: wall_time (1, double),
// step (2, varint), and file_version (3, "brain.Event:2") in the first one, summary (5) in the others.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace aha {

// Castagnoli's polynomial, reflected.
uint32_t crc32c(std::string_view bytes);
// ((crc >> 15) | (crc << 17)) + 0xa282ead8: a CRC of data that contain CRCs is otherwise weak.
uint32_t masked_crc32c(std::string_view bytes);

class EventFile {
 public:
  // FOLDER/events.out.tfevents.SECONDS.HOST.PID
  explicit EventFile(const std::string& folder);

  void scalar(std::string_view tag, int64_t step, double value);
  void flush() { file_.flush(); }
  const std::string& path() const { return path_; }

 private:
  void record(std::string_view event);

  std::string path_;
  std::ofstream file_;
};

}  // namespace aha
