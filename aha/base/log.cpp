#include "aha/base/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/ansicolor_sink.h>

#include "aha/base/terminal.h"

#if FMT_VERSION < 100000
template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::basic_string_view<char>,
                                            fmt::basic_format_args<fmt::buffer_context<char>>,
                                            fmt::detail::locale_ref);
#endif

namespace aha {

void start_log(LogLevel level) {
  const auto color = wants_color(2) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(color);
  sink->set_color(spdlog::level::info, sink->green);
  auto logger = std::make_shared<spdlog::logger>("aha", std::move(sink));
  logger->set_pattern("%^aha:%$ %v");
  logger->set_level(level == LogLevel::kQuiet     ? spdlog::level::err
                    : level == LogLevel::kVerbose ? spdlog::level::debug
                                                  : spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace aha
