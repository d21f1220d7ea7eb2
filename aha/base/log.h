// One log on stderr: `aha: ` lines for a person. Details appear with --verbose, nothing but errors with
// --quiet.
#pragma once

#include <spdlog/spdlog.h>

namespace aha {

enum class LogLevel { kQuiet, kNormal, kVerbose };
void start_log(LogLevel level);

}  // namespace aha
