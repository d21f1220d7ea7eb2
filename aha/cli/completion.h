// Scripts that complete `aha` in a shell, `aha help --completion bash|zsh|fish`: commands, flags, and the
// values that have names (choices, bundled models, methods, metrics, protocols, recipes). Files otherwise.
#pragma once

#include <string>
#include <vector>

#include "aha/cli/help.h"

namespace aha {

// Input error for another shell.
std::string completion_script(const std::vector<DeclaredCommand>& commands, const std::string& shell);

}  // namespace aha
