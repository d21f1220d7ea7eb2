#include "aha/cli/completion.h"

#include <fmt/format.h>

#include <map>

#include "aha/base/error.h"
#include "aha/evaluate/protocol.h"
#include "aha/methods/catalog.h"
#include "aha/metrics/catalog.h"
#include "aha/networks/catalog.h"

namespace aha {
namespace {

struct Completed {
  std::string flag, help;
  bool takes_value = false, list = false;  // a,b,c
  std::vector<std::string> values;         // empty = anything, files among them
};

std::vector<std::string> models_of(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& model : bundled_models())
    if (model.card.kind == kind) names.push_back(model.name);
  return names;
}

template <class Records>
std::vector<std::string> names_of(const Records& records) {
  std::vector<std::string> names;
  for (const auto& record : records) names.push_back(record.name);
  return names;
}

// Values of flags whose names are records somewhere.
const std::map<std::string, std::vector<std::string>>& known_values() {
  static const std::map<std::string, std::vector<std::string>> kKnown = [] {
    const auto methods = names_of(method_catalog());
    return std::map<std::string, std::vector<std::string>>{{"target", models_of("classifier")},
                                                           {"explainer", models_of("explainer")},
                                                           {"method", methods},
                                                           {"methods", methods},
                                                           {"metrics", names_of(metric_catalog())},
                                                           {"protocol", protocol_names()},
                                                           {"data", {"cifar10:sample", "cifar10:test"}},
                                                           {"config", recipe_names()}};
  }();
  return kKnown;
}

std::vector<Completed> completed(const DeclaredCommand& one) {
  std::vector<Completed> out;
  for (const Field& field : flags_of(one.command, one.declared, true)) {
    const FlagHelp help = help_of(field);
    Completed flag{"--" + field.name, field.help, !help.value.empty(), type_of(field).ends_with(",..."), {}};
    flag.values = field.choices;
    if (const auto known = known_values().find(field.name);
        flag.values.empty() && known != known_values().end())
      flag.values = known->second;
    flag.list = flag.list || field.name == "methods" || field.name == "metrics";
    out.push_back(flag);
    if (help.names.find("[no-]") != std::string::npos)
      out.push_back({"--no-" + field.name, "not: " + field.help, false, false, {}});
  }
  out.push_back({"--config", "flags from a TOML file or a recipe", true, false, known_values().at("config")});
  out.push_back({"--help", "flags with examples", false, false, {}});
  out.push_back({"--help-all", "all flags", false, false, {}});
  return out;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> first_words(const std::vector<DeclaredCommand>& commands) {
  std::vector<std::string> words;
  for (const auto& one : commands) words.push_back(one.command.name);
  words.push_back("help");
  return words;
}

std::string bash_script(const std::vector<DeclaredCommand>& commands) {
  const std::string first = joined(first_words(commands));
  std::string flags, values;
  for (const auto& one : commands) {
    std::vector<std::string> names;
    for (const auto& flag : completed(one)) {
      names.push_back(flag.flag);
      if (flag.takes_value)
        values += fmt::format("    {}:{}) words=\"{}\" value=1{} ;;\n", one.command.name, flag.flag,
                              joined(flag.values), flag.list ? " list=1" : "");
    }
    flags += fmt::format("    {}) words=\"{}\" ;;\n", one.command.name, joined(names));
  }
  return "# bash completion of aha\n_aha() {\n"
         "  local cur prev words= value= list= begin=\n"
         // A name may hold a colon, which bash takes for the end of a word.
         "  if declare -F _get_comp_words_by_ref > /dev/null; then _get_comp_words_by_ref -n := cur prev\n"
         "  else cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}; fi\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         first +
         " --help --version\" -- \"$cur\"))\n"
         "    return\n  fi\n"
         "  if [ \"${COMP_WORDS[1]}\" = help ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         first +
         " environment recipes\" -- \"$cur\"))\n"
         "    return\n  fi\n"
         "  case \"${COMP_WORDS[1]}:$prev\" in\n" +
         values +
         "  esac\n"
         "  if [ -z \"$value\" ]; then\n"
         "    case \"$cur\" in -*) ;; *) return ;; esac\n"
         "    case \"${COMP_WORDS[1]}\" in\n" +
         flags +
         "    esac\n  fi\n"
         "  if [ -n \"$list\" ]; then\n"
         "    case \"$cur\" in *,*) begin=${cur%,*}, ;; esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -P \"$begin\" -W \"$words\" -- \"${cur#\"$begin\"}\"))\n"
         "  if declare -F __ltrim_colon_completions > /dev/null; then __ltrim_colon_completions \"$cur\"; "
         "fi\n"
         "}\ncomplete -o default -F _aha aha\n";
}

std::string escaped(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

// A word of zsh or fish.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string zsh_script(const std::vector<DeclaredCommand>& commands) {
  std::string names, flags;
  for (const auto& one : commands) {
    names += "    " + in_quotes(one.command.name + ":" + one.command.summary) + "\n";
    flags += fmt::format("  {})\n    _arguments \\\n", one.command.name);
    for (const auto& flag : completed(one)) {
      std::string spec = fmt::format("{}[{}]", flag.flag, escaped(flag.help, "[]:\\"));
      std::vector<std::string> values;
      for (const auto& value : flag.values) values.push_back(escaped(value, ":"));
      if (flag.takes_value)
        spec += flag.values.empty() ? ":value:_files"
                : flag.list         ? fmt::format(":value:_values -s , value {}", joined(values))
                                    : fmt::format(":value:({})", joined(values));
      flags += "      " + in_quotes(spec) + " \\\n";
    }
    flags += "      '*:file:_files' ;;\n";
  }
  return "#compdef aha\nlocal -a commands\nif (( CURRENT == 2 )); then\n  commands=(\n" + names +
         "    'help:flags with examples'\n  )\n  _describe command commands\n  return\nfi\n"
         "local command=$words[2]\nshift words\n(( CURRENT-- ))\ncase $command in\n" +
         flags + "esac\n";
}

std::string fish_script(const std::vector<DeclaredCommand>& commands) {
  std::string out = "# fish completion of aha\n";
  for (const auto& one : commands)
    out += fmt::format("complete -c aha -n __fish_use_subcommand -f -a {} -d {}\n", one.command.name,
                       in_quotes(escaped(one.command.summary, "\\")));
  out += "complete -c aha -n __fish_use_subcommand -f -a help -d 'flags with examples'\n";
  for (const auto& one : commands)
    for (const auto& flag : completed(one)) {
      out += fmt::format("complete -c aha -n '__fish_seen_subcommand_from {}' -l {} -d {}", one.command.name,
                         flag.flag.substr(2), in_quotes(escaped(flag.help, "\\")));
      if (flag.takes_value) out += " -r";
      if (!flag.values.empty()) out += fmt::format(" -a '{}'", joined(flag.values));
      out += "\n";
    }
  return out;
}

}  // namespace

std::string completion_script(const std::vector<DeclaredCommand>& commands, const std::string& shell) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw input_error("help --completion: expected bash, zsh or fish, found '{}'", printable(shell));
}

}  // namespace aha
