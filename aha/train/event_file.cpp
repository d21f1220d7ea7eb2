#include "aha/train/event_file.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::array<uint32_t, 256> kTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}();

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}
std::string key(int field, Wire wire) {
  return varint(static_cast<uint64_t>(field) << 3 | wire);
}
std::string bytes_field(int field, std::string_view bytes) {
  return key(field, kBytes) + varint(bytes.size()) + std::string(bytes);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event(int64_t step, const std::string& rest) {
  return key(1, kFixed64) + raw(wall_time()) + key(2, kVarint) + varint(static_cast<uint64_t>(step)) + rest;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

EventFile::EventFile(const std::string& folder) {
  make_directories(folder);
  char host[65] = "localhost";
  ::gethostname(host, sizeof host - 1);
  path_ = fmt::format("{}/events.out.tfevents.{:010d}.{}.{}", folder, static_cast<int64_t>(wall_time()), host,
                      ::getpid());
  file_.open(path_, std::ios::app | std::ios::binary);
  if (!file_) throw input_error("{}: cannot write: {}", path_, std::strerror(errno));
  record(event(0, bytes_field(3, "brain.Event:2")));
}

void EventFile::scalar(std::string_view tag, int64_t step, double value) {
  const std::string point = bytes_field(1, tag) + key(2, kFixed32) + raw(static_cast<float>(value));
  record(event(step, bytes_field(5, bytes_field(1, point))));
}

void EventFile::record(std::string_view data) {
  const std::string length = raw(static_cast<uint64_t>(data.size()));
  if (!(file_ << length << raw(masked_crc32c(length)) << data << raw(masked_crc32c(data))))
    throw work_error("{}: cannot write: {}", path_, std::strerror(errno));
}

}  // namespace aha
