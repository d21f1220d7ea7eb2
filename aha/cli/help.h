// What `aha --help`, `aha help TOPIC` and `aha COMMAND --help` print: flags in groups, defaults as one would
// type them, examples that run as they are.
#pragma once

#include <string>
#include <vector>

#include "aha/cli/command.h"

namespace aha {

struct HelpPage {
  size_t width = 0;  // of the terminal; 0 = any
  bool color = false;
  bool all = false;  // --help-all
};

std::string overview_help(const std::vector<Command>& commands, const HelpPage& page);
std::string command_help(const Command& command, const Declaration& declared, const HelpPage& page);

// Variables that change what the program does or where it looks.
std::string environment_help(const HelpPage& page);
// Recipes that --config finds by name.
std::string recipes_help(const HelpPage& page);

// The file that --config means: a path, or the name of a recipe that ships with the program.
std::string recipe_file(const std::string& given);

}  // namespace aha
