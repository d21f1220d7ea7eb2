#include "aha/cli/help.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "aha/base/error.h"
#include "aha/base/shipped.h"
#include "aha/base/terminal.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWidest = 110, kFlagColumns = 26;

enum class FlagGroup { kInput, kMethod, kOutput, kRun };
constexpr const char* kGroupTitles[] = {"Input", "Method", "Output", "Run"};

// Of a flag that stands in none of these lists: what is done, the method.
FlagGroup group_of(const std::string& name) {
  static const std::map<FlagGroup, std::vector<std::string>> kGroups = {
      {FlagGroup::kInput,
       {"target", "input-size", "mean", "std", "data", "limit", "skip", "every", "from", "arch", "teacher",
        "test", "explainer", "encoder", "max-megapixels", "results"}},
      {FlagGroup::kOutput,
       {"out", "json", "topk", "score", "images", "keep-maps", "together", "tensors", "identity", "size",
        "overwrite", "sheet", "contours", "opset", "weights", "quiet", "verbose"}},
      {FlagGroup::kRun,
       {"device", "threads", "precision", "seed", "batch-size", "config", "workers", "worker-timeout",
        "resume", "checkpoint-every", "log-every", "strict", "timing-runs", "port", "host", "open"}},
  };
  for (const auto& [group, names] : kGroups)
    if (std::find(names.begin(), names.end(), name) != names.end()) return group;
  return name.starts_with("heat-") ? FlagGroup::kOutput : FlagGroup::kMethod;
}

// What stands behind a flag: N, NUMBER, a|b, or what kind of text it takes.
std::string value_name(const Field& field) {
  static const std::map<std::string, std::string> kNames = {
      {"target", "T"},    {"data", "D"},       {"out", "DIR"},      {"explainer", "E"}, {"encoder", "E"},
      {"method", "M"},    {"methods", "LIST"}, {"metrics", "LIST"}, {"class", "C"},     {"from", "E"},
      {"budget", "TIME"}, {"device", "D"},     {"protocol", "P"},   {"config", "FILE"}, {"mean", "R,G,B"},
      {"std", "R,G,B"},   {"teacher", "T"},    {"arch", "A"},       {"test", "D"}};
  if (const auto found = kNames.find(field.name); found != kNames.end() && field.choices.empty())
    return found->second;
  std::string type = type_of(field);
  const bool list = type.ends_with(",...");
  if (list) type.erase(type.size() - 4);
  if (field.choices.empty()) type.erase(std::min(type.find(' '), type.size()));
  if (type == "INT") type = "N";
  if (type == "NUMBER") type = "X";
  return list ? type + ",..." : type;
}

// As it would be typed; empty where there is nothing to say.
std::string start_text(const Field& field) {
  if (field.help.find("default:") != std::string::npos) return "";
  const nlohmann::json start = json_from_field(field);
  if (start.is_boolean()) return start.get<bool>() ? "on" : "";
  if (start.is_string()) return start.get<std::string>();
  std::vector<std::string> parts;
  for (const auto& one : start.is_array() ? start : nlohmann::json::array({start})) {
    if (one.is_number() && field.low && (one.get<double>() < *field.low)) return "";  // not set
    parts.push_back(one.is_string() ? one.get<std::string>() : fmt::format("{}", one.get<double>()));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string range_remark(const Field& field) {
  const std::string type = type_of(field);
  const size_t at = type.find(" in ");
  return !field.choices.empty() || at == std::string::npos || type.find(" in 0..") == at
             ? ""
             : type.substr(at + 1, type.find(',', at) - at - 1);
}

// "  --flag VALUE   help [start]", fitted.
std::string entry(const std::string& flag, const std::string& help, const HelpPage& page) {
  const size_t columns = columns_of(flag);
  std::string out = "  " + styled(flag, Style::kBold, page.color);
  if (columns + 2 >= kFlagColumns) out += '\n';
  out.append(columns + 2 < kFlagColumns ? kFlagColumns - 2 - columns : kFlagColumns, ' ');
  return out + wrapped(help, page.width == 0 ? kWidest : std::min(page.width, kWidest), kFlagColumns) + "\n";
}

std::string flag_entry(const Field& field, const HelpPage& page) {
  const FlagHelp help = help_of(field);
  return entry(help.value.empty() ? help.names : help.names + " " + help.value, help.text, page);
}

std::string title(const std::string& text, const HelpPage& page) {
  return "\n" + styled(text, Style::kBold, page.color) + "\n";
}

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string recipes_folder() {
  return find_shipped({"AHA_RECIPES", "recipes", "recipes", "cifar10-convnext.toml"});
}

}  // namespace

FlagHelp help_of(const Field& field) {
  FlagHelp out;
  const bool truth = std::holds_alternative<bool*>(field.slot), on = truth && *std::get<bool*>(field.slot);
  const std::string letter = field.name == "quiet" ? "-q, " : field.name == "verbose" ? "-v, " : "";
  out.names = fmt::format("{}--{}{}", letter, on ? "[no-]" : "", field.name);
  if (!truth) out.value = value_name(field);
  const std::string start = start_text(field), range = range_remark(field);
  out.text = field.help;
  if (!range.empty()) out.text += " (" + range + ")";
  if (!start.empty()) out.text += " [" + start + "]";
  return out;
}

std::vector<Field> flags_of(const Command& command, const Declaration& declared, bool all) {
  static const std::vector<std::string> kCommon = {"device",     "threads", "precision", "seed",
                                                   "batch-size", "json",    "quiet",     "verbose"};
  std::vector<Field> out;
  for (const Field& field : declared.all().list()) {
    if (contains(kCommon, field.name) && !contains(command.common, field.name)) continue;
    if (all || command.usual.empty() || contains(command.usual, field.name)) out.push_back(field);
  }
  return out;
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(recipes_folder(), error))
    if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string overview_help(const std::vector<Command>& commands, const HelpPage& page) {
  std::string out =
      "Which pixels drove an image classifier's decision? aha explains any classifier, and evaluates "
      "explanations.\n\nUsage: aha COMMAND [FLAGS] ...\n" +
      title("Commands", page);
  for (const Command& command : commands) out += entry(command.name, command.summary, page);
  out += title("More", page);
  out += entry("help COMMAND", "the same as COMMAND --help; --help-all where a command has more flags", page);
  out += entry("help environment", "environment variables", page);
  out += entry("help recipes", "settings that --config finds by name", page);
  out += entry("help --completion SHELL",
               "completes flags and names in bash, zsh or fish; help --man: the man page", page);
  out += entry("-V, --version", "the version", page);
  out += title("Examples", page);
  out += fmt::format("  {}\n", kExampleImages);
  for (const Command& command : commands)
    if (const std::string first = command.examples.substr(0, command.examples.find('\n'));
        first != std::string("  ") + kExampleImages)
      out += first + "\n";
  return out;
}

std::string command_help(const Command& command, const Declaration& declared, const HelpPage& page) {
  std::string out = fmt::format("{}\n\nUsage: aha {} [FLAGS]{}\n", command.summary, command.name,
                                declared.words().empty() ? "" : " " + declared.words());
  if (!declared.words().empty()) out += "\n" + entry(declared.words(), declared.words_help(), page);
  std::map<FlagGroup, std::string> groups;
  const auto shown = flags_of(command, declared, page.all);
  const size_t hidden = flags_of(command, declared, true).size() - shown.size();
  for (const Field& field : shown) groups[group_of(field.name)] += flag_entry(field, page);
  groups[FlagGroup::kRun] +=
      entry("--config FILE", "flags from a TOML file or a recipe (`aha help recipes`); the command line wins",
            page);
  for (const auto& [group, text] : groups)
    out += title(kGroupTitles[static_cast<size_t>(group)], page) + text;
  if (hidden > 0) out += fmt::format("\n{} more flags: aha {} --help-all\n", hidden, command.name);
  out += title("Examples", page);
  if (command.examples.find("images/") != std::string::npos &&
      command.examples.find(kExampleImages) == std::string::npos)
    out += fmt::format("  {}\n", kExampleImages);
  out += command.examples + "\n";
  if (!command.templates.empty()) out += title("With your own files", page) + command.templates + "\n";
  return out;
}

const std::vector<Variable>& environment_variables() {
  static const std::vector<Variable> kVariables = {
      {"AHA_MODELS", "folder of the bundled models, instead of the one that ships with the program"},
      {"AHA_DATA", "folder of the data that ships with the program (cifar10:sample)"},
      {"AHA_PROTOCOLS", "folder of the protocols of aha eval"},
      {"AHA_RECIPES", "folder of the recipes that --config finds by name"},
      {"AHA_PROBLEMS", "folder of the problems that aha bench measures"},
      {"AHA_ISA", "ref, avx2, avx512, avx512bf16 or amx: use no newer instructions than these"},
      {"AHA_TUNING", "off: leave OpenBLAS, oneDNN and OpenMP as they start by themselves"},
      {"AHA_CACHE", "folder of what was downloaded; otherwise XDG_CACHE_HOME/aha or ~/.cache/aha"},
      {"NO_COLOR", "not empty: no colors, also on a terminal"},
  };
  return kVariables;
}

std::string environment_help(const HelpPage& page) {
  std::string out = "Environment variables\n\n";
  for (const auto& variable : environment_variables()) out += entry(variable.name, variable.meaning, page);
  return out;
}

std::string recipes_help(const HelpPage& page) {
  std::string out = "Recipes: aha train --config NAME, aha fit --config NAME\n\n";
  for (const auto& name : recipe_names())
    out += entry(name, (fs::path(recipes_folder()) / (name + ".toml")).string(), page);
  return out;
}

std::string recipe_file(const std::string& given) {
  std::error_code error;
  if (fs::exists(given, error)) return given;
  const fs::path path(given);
  const std::string name = path.extension() == ".toml" ? path.stem().string() : path.filename().string();
  const fs::path shipped = fs::path(recipes_folder()) / (name + ".toml");
  // "recipes/NAME.toml", as the documentation has it, works from any folder, too.
  const bool by_name = !path.has_parent_path() || path.parent_path() == "recipes";
  if (by_name && fs::exists(shipped, error)) return shipped.string();
  if (by_name && path.extension() != ".toml") throw unknown_name_error("recipe", given, recipe_names());
  return given;  // reading it says what is wrong
}

}  // namespace aha
