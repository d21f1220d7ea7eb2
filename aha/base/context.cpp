#include "aha/base/context.h"

#include <charconv>

#include "aha/base/error.h"

namespace aha {

Device device_from_text(const std::string& text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {true, 0};
  if (text.starts_with("cuda:")) {
    Device device{true, 0};
    const char* end = text.data() + text.size();
    const auto [at, code] = std::from_chars(text.data() + 5, end, device.index);
    if (code == std::errc() && at == end && device.index >= 0) return device;
  }
  throw input_error("--device: expected cpu, cuda or cuda:N, found '{}'", printable(text));
}

std::string text_from_device(const Device& device) {
  return device.cuda ? fmt::format("cuda:{}", device.index) : "cpu";
}

void CancelToken::check() const {
  if (canceled()) throw Error(ErrorKind::kCanceled, "stopped");
}

Progress Context::progress(std::string what, int64_t total) const {
  return Progress(std::move(what), total, quiet ? Progress::Show::kNever : Progress::Show::kOnTerminal);
}

}  // namespace aha
