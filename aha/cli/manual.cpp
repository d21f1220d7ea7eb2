#include "aha/cli/manual.h"

#include <fmt/format.h>

#include <cctype>

namespace aha {
namespace {

// A hyphen is a minus sign, a backslash is one, and no line begins with a request.
std::string troff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string item(const std::string& what, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", what, troff(text));
}

std::string flag_item(const Field& field) {
  const FlagHelp help = help_of(field);
  std::string what = "\\fB" + troff(help.names) + "\\fR";
  if (!help.value.empty()) what += " \\fI" + troff(help.value) + "\\fR";
  return item(what, help.text);
}

std::string as_typed(const std::string& lines) {
  return ".nf\n" + troff(lines) + "\n.fi\n";
}

std::string command_section(const DeclaredCommand& one) {
  const auto& [command, declared] = one;
  std::string out = fmt::format(".SS {}\n", troff("aha " + command.name));
  out += fmt::format(".B {}\n[\\fIFLAGS\\fR]{}\n.PP\n", troff("aha " + command.name),
                     declared.words().empty() ? "" : " " + troff(declared.words()));
  std::string summary = command.summary;
  summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  out += troff(summary) + ".\n";
  if (!declared.words().empty())
    out += item("\\fI" + troff(declared.words()) + "\\fR", declared.words_help());
  for (const Field& field : flags_of(command, declared, true)) out += flag_item(field);
  out += item("\\fB\\-\\-config\\fR \\fIFILE\\fR",
              "flags from a TOML file or a recipe (aha help recipes); the command line wins");
  return out + ".PP\n" + as_typed(command.examples);
}

}  // namespace

std::string man_page(const std::vector<DeclaredCommand>& commands, const std::string& version) {
  std::string out = fmt::format(".TH AHA 1 \"\" \"aha {}\" \"User Commands\"\n.SH NAME\naha \\- ", version) +
                    "which pixels drove an image classifier's decision\n"
                    ".SH SYNOPSIS\n.B aha\n\\fICOMMAND\\fR [\\fIFLAGS\\fR] ...\n"
                    ".SH DESCRIPTION\n" +
                    troff(
                        "aha explains image classifiers with maps, one number for each pixel, higher = "
                        "more important. It evaluates such maps, its own and those of other tools, and "
                        "trains explainers. It runs on the CPU. `aha help COMMAND` says the same of one "
                        "command.") +
                    "\n.SH COMMANDS\n";
  for (const auto& one : commands) out += command_section(one);
  out += ".SH EXIT STATUS\n" + item("0", "done") + item("1", "the work failed") +
         item("2", "the call or an input was wrong: one line on stderr says what was expected and found") +
         item("130, 143", "stopped by SIGINT, by SIGTERM");
  out += ".SH ENVIRONMENT\n";
  for (const auto& variable : environment_variables())
    out += item(fmt::format("\\fB{}\\fR", variable.name), variable.meaning);
  out += ".SH EXAMPLES\n" + as_typed(std::string("  ") + kExampleImages);
  for (const auto& one : commands)
    if (one.command.name == "explain" || one.command.name == "eval")
      out += ".PP\n" + as_typed(one.command.examples);
  return out;
}

}  // namespace aha
