// Reads the words of a command line once before they are parsed, for mistakes that deserve a better answer
// than the parser's: a flag nobody knows, a flag given twice.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aha/base/options.h"

namespace aha {

// `words` stand behind the command's name; `known` has the flags of every command.
void check_flags(const std::vector<std::string>& words, const std::string& command,
                 const std::map<std::string, const Fields*>& known);

}  // namespace aha
