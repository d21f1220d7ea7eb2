// What `aha --help`, `aha help TOPIC` and `aha COMMAND --help` print: flags in groups, defaults as one would
// type them, examples that run as they are.
#pragma once

#include <string>
#include <vector>

#include "aha/cli/command.h"

namespace aha {

// A flag as all pages show it.
struct FlagHelp {
  std::string names;  // "--[no-]score", "-q, --quiet"
  std::string value;  // "N", "f32|bf16", "LIST"; empty = none
  std::string text;   // what it does, its range, where it starts
};
FlagHelp help_of(const Field& field);

struct DeclaredCommand {
  const Command& command;
  const Declaration& declared;
};

// Flags that the command has a use for; `all` = those that --help leaves to --help-all, too.
std::vector<Field> flags_of(const Command& command, const Declaration& declared, bool all);

// Variables that change what the program does or where it looks.
struct Variable {
  const char *name, *meaning;
};
const std::vector<Variable>& environment_variables();

// Names that --config finds.
std::vector<std::string> recipe_names();

struct HelpPage {
  size_t width = 0;  // of the terminal; 0 = any
  bool color = false;
  bool all = false;  // --help-all
};

std::string overview_help(const std::vector<Command>& commands, const HelpPage& page);
std::string command_help(const Command& command, const Declaration& declared, const HelpPage& page);

std::string environment_help(const HelpPage& page);
std::string recipes_help(const HelpPage& page);

// The file that --config means: a path, or the name of a recipe that ships with the program.
std::string recipe_file(const std::string& given);

}  // namespace aha
