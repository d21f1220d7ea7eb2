// The man page, `aha help --man`: what the help pages say of all commands, as troff. Made when the program is
// built, from the declarations of the flags.
#pragma once

#include <string>
#include <vector>

#include "aha/cli/help.h"

namespace aha {

std::string man_page(const std::vector<DeclaredCommand>& commands, const std::string& version);

}  // namespace aha
