#include "aha/base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "aha/base/progress_listener.h"
#include "aha/base/terminal.h"

namespace aha {
namespace {

std::atomic<int> g_lines = 0;  // shown at this moment: a method's within the one of many images

thread_local ProgressListener* t_listener = nullptr;

}  // namespace

ProgressListener::ProgressListener(Listen listen) : listen_(std::move(listen)), outer_(t_listener) {
  t_listener = this;
}

ProgressListener::~ProgressListener() {
  t_listener = outer_;
}

bool has_progress_listener() {
  return t_listener != nullptr;
}

void tell_listener(const ProgressReport& report) {
  if (t_listener) t_listener->listen_(report);
}

std::string clock_text(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

Progress::Progress(std::string what, int64_t total, Show show)
    : what_(std::move(what)),
      total_(total),
      shown_(show == Show::kAlways || (show == Show::kOnTerminal && isatty(2))),
      start_(std::chrono::steady_clock::now()) {
  if (shown_) ++g_lines;
}

Progress::~Progress() {
  if (!shown_) return;
  const bool inner = --g_lines > 0;
  if (inner) std::fprintf(stderr, "\r\033[K");  // makes room for the outer one
  if (!inner && done_ > 0) draw(true);
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Progress::advance(int64_t by, const std::string& note) {
  done_ += by;
  if (!note.empty()) note_ = note;
  if (!shown_ && !has_progress_listener()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && done_ != total_) return;
  drawn_ = now;
  tell_listener({what_, note_, done_, total_});
  if (shown_) draw(false);
}

void Progress::draw(bool last) {
  const double elapsed = seconds(), rate = elapsed > 0 ? static_cast<double>(done_) / elapsed : 0;
  std::string line;
  if (total_ > 0) {
    constexpr int kWidth = 24;
    const int full = static_cast<int>(kWidth * std::min(done_, total_) / total_);
    line =
        fmt::format("{} [{:=>{}}{:{}}] {}/{}  {:.1f}/s  {} left", what_, "", full, "", kWidth - full, done_,
                    total_, rate, rate > 0 ? clock_text(static_cast<double>(total_ - done_) / rate) : "?");
  } else {
    line = fmt::format("{} {}  {:.1f}/s  {}", what_, done_, rate, clock_text(elapsed));
  }
  if (!note_.empty()) line += "  " + note_;
  line = shortened(line, std::max(0, terminal_width(2) - 1));  // a wrapped line could not be redrawn
  std::fprintf(stderr, "\r\033[K%s%s", line.c_str(), last ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace aha
