// One log on stderr: `aha: ` lines for a person. Details appear with --verbose, nothing but errors with
// --quiet.
#pragma once

#include <spdlog/spdlog.h>

// spdlog calls this template of fmt's, and fmt 9 does not say that its library has it: each file that logs
// compiled the whole formatter once more (1.2 s of CPU time). It is in log.cpp.
#if FMT_VERSION < 100000
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::basic_string_view<char>,
                                                   fmt::basic_format_args<fmt::buffer_context<char>>,
                                                   fmt::detail::locale_ref);
#endif

namespace aha {

enum class LogLevel { kQuiet, kNormal, kVerbose };
void start_log(LogLevel level);

}  // namespace aha
