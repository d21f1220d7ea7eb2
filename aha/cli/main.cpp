// The product's door: a table of commands, and the only place where an error becomes an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/base/parallel.h"
#include "aha/base/startup.h"
#include "aha/base/terminal.h"
#include "aha/base/time_spent.h"
#include "aha/base/toml.h"
#include "aha/cli/command.h"
#include "aha/cli/completion.h"
#include "aha/cli/flag_check.h"
#include "aha/cli/help.h"
#include "aha/cli/manual.h"
#include "aha/image/pixel_limit.h"
#include "aha/kernels/core/cpu.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

std::vector<Command> commands() {
  return {
      models_command(), classify_command(), inspect_command(),    explain_command(), train_command(),
      eval_command(),   compare_command(),  fit_command(),        get_command(),     data_command(),
      bench_command(),  serve_command(),    experiment_command(), export_command(),
  };
}

// The value of --config anywhere on the command line: it has to be applied before the flags are.
std::string config_path(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--config" && i + 1 < argc) return recipe_file(argv[i + 1]);
    if (word.starts_with("--config=")) return recipe_file(word.substr(9));
  }
  return "";
}

// The first of the file's options that a command does not have; empty = it has them all.
std::string first_unknown(const nlohmann::json& options, const Fields& known) {
  for (const auto& [key, value] : options.items())
    if (!known.find(key)) return key;
  return "";
}

Device best_device() {
  return torch::cuda::is_available() ? Device{true, 0} : Device{};
}

std::shared_ptr<CancelToken> g_cancel;
std::atomic<int> g_stopped_by = 0;  // a signal

void on_stop(int signal) {
  g_stopped_by = signal;
  if (g_cancel) g_cancel->cancel();
  std::signal(SIGINT, SIG_DFL);  // a second signal ends the program at once
  std::signal(SIGTERM, SIG_DFL);
}

constexpr const char* kLoading = "libraries";
constexpr int kMostPerCore = 4;

// Threads far beyond the cores only take turns, and the answer does not depend on their number.
int sensible_threads(int asked) {
  const int cores = cores_present();
  if (asked <= kMostPerCore * cores) return asked;
  spdlog::warn("--threads {}: this machine has {} core{}; taking {}", asked, cores, cores == 1 ? "" : "s",
               cores);
  return cores;
}

void start(Call& call) {
  const CommonOptions& o = call.common;
  if (o.quiet && o.verbose) throw input_error("--quiet and --verbose exclude each other");
  start_log(o.quiet ? LogLevel::kQuiet : o.verbose ? LogLevel::kVerbose : LogLevel::kNormal);
  Context& c = call.context;
  c.device = o.device == "best" ? best_device() : device_from_text(o.device);
  c.threads = sensible_threads(o.threads);
  c.seed = static_cast<uint64_t>(o.seed);
  c.precision = o.precision == "bf16" ? Precision::kBf16 : Precision::kF32;
  c.batch_size = o.batch_size;
  c.quiet = o.quiet;
  c.verbose = o.verbose;
  set_max_megapixels(o.max_megapixels);
  start_compute(c);
  if (!reserve_openblas_buffers(threads() + 1))
    throw work_error("too little memory for {} threads (ulimit -v); fewer --threads need less", threads());
  g_cancel = c.cancel;
  std::signal(SIGINT, on_stop);
  std::signal(SIGTERM, on_stop);
  for (const auto& choice : library_choices())
    spdlog::debug("{}={}: {}", choice.variable, choice.value, choice.why);
  spdlog::debug("OpenBLAS runs its {} core", openblas_core());
  spdlog::debug("{}", describe_cpu());
}

// The command line as it was declared: one sub-parser for each command.
class CommandLine {
 public:
  explicit CommandLine(Call& call) : app_("", "aha"), commands_(commands()) {
    app_.require_subcommand(1);
    app_.set_help_flag();  // cli/help.h has it
    for (const Command& command : commands_) {
      CLI::App* parser = app_.add_subcommand(command.name, command.summary);
      parser->set_help_flag();
      auto declaration = std::make_unique<Declaration>(*parser);
      Run run = command.declare(*declaration);
      declaration->add(fields(call.common));
      parser->add_option("--config", config_);
      entries_.push_back({parser, std::move(declaration), std::move(run)});
    }
  }

  // Sets every option from the file and the flags; the chosen command. Nothing where help or the version was
  // printed.
  const Run* parse(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (const auto text = help_asked_for(words)) {
      std::fputs(text->c_str(), stdout);
      return nullptr;
    }
    try {
      if (const Entry* entry = words.empty() ? nullptr : entry_of(words[0])) {
        std::map<std::string, const Fields*> known;
        for (const Entry& one : entries_) known[one.parser->get_name()] = &one.declaration->all();
        check_flags({words.begin() + 1, words.end()}, entry->parser->get_name(), known);
      }
      if (const std::string path = config_path(argc, argv); argc > 1 && !path.empty())
        apply_config(path, argv[1]);
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      refuse(error, argc > 1 ? argv[1] : "");
    }
    for (const Entry& entry : entries_)
      if (entry.parser->parsed()) return &entry.run;
    return nullptr;
  }

 private:
  struct Entry {
    CLI::App* parser;
    std::unique_ptr<Declaration> declaration;
    Run run;
  };

  const Entry* entry_of(const std::string& command) const {
    for (const Entry& entry : entries_)
      if (entry.parser->get_name() == command) return &entry;
    return nullptr;
  }

  // What `aha help ...`, --help, --help-all and --version print.
  std::optional<std::string> help_asked_for(const std::vector<std::string>& words) const {
    if (words.empty()) return std::nullopt;
    const auto first = [&](auto... any) { return ((words[0] == any) || ...); };
    if (first("-V", "--version")) return "aha " AHA_VERSION "\n";
    HelpPage page{static_cast<size_t>(terminal_width(1)), wants_color(1), false};
    const bool by_word = first("help");
    bool asked = by_word;
    for (const auto& word : words) {
      if (word == "--") break;
      asked = asked || word == "-h" || word == "--help" || word == "--help-all";
      page.all = page.all || word == "--help-all";
    }
    if (!asked) return std::nullopt;
    const std::string topic = !by_word ? words[0] : words.size() > 1 ? words[1] : "";
    if (by_word && topic == "--man") return man_page(declared_commands(), AHA_VERSION);
    if (by_word && topic == "--completion")
      return completion_script(declared_commands(), words.size() > 2 ? words[2] : "");
    if (topic.empty() || topic[0] == '-') return overview_help(commands_, page);
    if (topic == "environment") return environment_help(page);
    if (topic == "recipes") return recipes_help(page);
    const Entry* entry = entry_of(topic);
    if (!entry) refuse_command(topic, {"environment", "recipes"});
    return command_help(commands_[static_cast<size_t>(entry - entries_.data())], *entry->declaration, page);
  }

  std::vector<DeclaredCommand> declared_commands() const {
    std::vector<DeclaredCommand> out;
    for (size_t i = 0; i < commands_.size(); ++i) out.push_back({commands_[i], *entries_[i].declaration});
    return out;
  }

  [[noreturn]] void refuse_command(const std::string& found, std::vector<std::string> names) const {
    for (const Command& command : commands_) names.push_back(command.name);
    throw unknown_name_error("command", found, names);
  }

  void apply_config(const std::string& path, const std::string& command) {
    const nlohmann::json options = json_from_toml(path);
    for (auto& entry : entries_) {
      if (entry.parser->get_name() != command) continue;
      const std::string unknown = first_unknown(options, entry.declaration->all());
      for (const auto& other : entries_)
        if (!unknown.empty() && first_unknown(options, other.declaration->all()).empty())
          throw input_error("{}: expected options of aha {}, found '{}' and others of aha {}", path, command,
                            unknown, other.parser->get_name());
      set_all_from_json(entry.declaration->all(), options, path);
    }
  }

  [[noreturn]] void refuse(const CLI::ParseError& error, const std::string& command) const {
    const Entry* entry = entry_of(command);
    if (!command.empty() && command[0] != '-' && !entry) refuse_command(command, {});
    const std::string where = entry ? "aha " + command : "aha";
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw input_error("{} (try {} --help)", message, where);
  }

  CLI::App app_;
  std::vector<Command> commands_;
  std::vector<Entry> entries_;
  std::string config_;
};

void log_times(double here) {
  std::vector<std::string> parts;
  double before = 0;  // this library was there
  for (const auto& [on, seconds] : times_spent()) {
    parts.push_back(fmt::format("{} {:.0f}", on, 1000 * seconds));
    if (on == kLoading) before = seconds;
  }
  spdlog::debug("{:.0f} ms; of them {}", 1000 * (before + here), fmt::join(parts, ", "));
}

int run(int argc, char** argv) {
  const Timer since_start;
  Call call;
  CommandLine line(call);
  if (const Run* command = line.parse(argc, argv)) {
    start(call);
    (*command)(call);
    log_times(since_start.seconds());
  }
  flush_output();
  return call.exit_code;
}

// What another thread could not catch ends the program like any failure.
[[noreturn]] void on_terminate() {
  const char* message = "a thread failed";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
  }
  std::fprintf(stderr, "aha: %s\n", message);
  std::_Exit(1);
}

// libtorch's messages carry a stack trace behind the first line.
std::string message_from(const std::exception& error) {
  std::string message = error.what();
  if (message.find("can't allocate memory") != std::string::npos) return "out of memory";
  message.erase(std::min(message.find('\n'), message.size()));
  return message;
}

}  // namespace
}  // namespace aha

// loading: seconds that it took to load this library.
extern "C" int aha_main(int argc, char** argv, double loading) {
  std::string message;
  int code = 1;
  std::set_terminate(aha::on_terminate);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is output that cannot be written
  try {
    aha::set_library_environment();
    aha::add_time_spent(aha::kLoading, loading);
    return aha::run(argc, argv);
  } catch (const aha::Error& error) {
    message = error.what();
    code = error.exit_code();
  } catch (const std::bad_alloc&) {
    message = "out of memory";
  } catch (const std::exception& error) {
    message = aha::message_from(error);
  }
  if (aha::g_stopped_by != 0) code = 128 + aha::g_stopped_by;
  const std::string who = aha::styled("aha:", aha::Style::kError, aha::wants_color(2));
  std::fprintf(stderr, "%s %s\n", who.c_str(), message.c_str());
  return code;
}
