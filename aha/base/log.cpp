#include "aha/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

namespace aha {

void start_log(LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("aha", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("aha: %v");
  logger->set_level(level == LogLevel::kQuiet     ? spdlog::level::err
                    : level == LogLevel::kVerbose ? spdlog::level::debug
                                                  : spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace aha
