// The product's door: a table of commands, and the only place where an error becomes an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/base/startup.h"
#include "aha/base/toml.h"
#include "aha/cli/command.h"
#include "aha/kernels/core/cpu.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

std::vector<Command> commands() {
  return {
      models_command(), classify_command(), inspect_command(), explain_command(),
      train_command(),  eval_command(),     compare_command(), fit_command(),
      get_command(),    data_command(),     bench_command(),
  };
}

constexpr const char* kIntroduction =
    "Which pixels drove an image classifier's decision? aha explains any classifier, and evaluates "
    "explanations.";

// The value of --config anywhere on the command line: it has to be applied before the flags are.
std::string config_path(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--config" && i + 1 < argc) return argv[i + 1];
    if (word.starts_with("--config=")) return word.substr(9);
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

void on_interrupt(int) {
  if (g_cancel) g_cancel->cancel();
  std::signal(SIGINT, SIG_DFL);  // a second Ctrl-C ends the program at once
}

void start(Call& call) {
  const CommonOptions& o = call.common;
  if (o.quiet && o.verbose) throw input_error("--quiet and --verbose exclude each other");
  start_log(o.quiet ? LogLevel::kQuiet : o.verbose ? LogLevel::kVerbose : LogLevel::kNormal);
  Context& c = call.context;
  c.device = o.device == "best" ? best_device() : device_from_text(o.device);
  c.threads = o.threads;
  c.seed = static_cast<uint64_t>(o.seed);
  c.precision = o.precision == "bf16" ? Precision::kBf16 : Precision::kF32;
  c.batch_size = o.batch_size;
  c.quiet = o.quiet;
  c.verbose = o.verbose;
  start_compute(c);
  g_cancel = c.cancel;
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  for (const auto& choice : library_choices())
    spdlog::debug("{}={}: {}", choice.variable, choice.value, choice.why);
  spdlog::debug("OpenBLAS runs its {} core", openblas_core());
  spdlog::debug("{}", describe_cpu());
}

// The command line as it was declared: one sub-parser for each command.
class CommandLine {
 public:
  explicit CommandLine(Call& call) : app_(kIntroduction, "aha") {
    app_.set_version_flag("--version", "aha " AHA_VERSION);
    app_.require_subcommand(1);
    app_.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });
    std::string overview = "Examples:\n";
    for (const Command& command : commands()) {
      CLI::App* parser = app_.add_subcommand(command.name, command.summary);
      parser->footer("Examples:\n" + command.examples);
      auto declaration = std::make_unique<Declaration>(*parser);
      Run run = command.declare(*declaration);
      declaration->add(fields(call.common));
      parser->add_option("--config", config_, "options from a TOML file; a flag on the command line wins")
          ->type_name("FILE");
      entries_.push_back({parser, std::move(declaration), std::move(run)});
      overview += command.examples.substr(0, command.examples.find('\n') + 1);
    }
    app_.footer(overview + "\n`aha COMMAND --help` shows every flag of a command with examples.");
  }

  // Sets every option from the file and the flags; the chosen command. Nothing where help or the version was
  // printed.
  const Run* parse(int argc, char** argv) {
    try {
      if (const std::string path = config_path(argc, argv); argc > 1 && !path.empty())
        apply_config(path, argv[1]);
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      std::fputs(app_.help().c_str(), stdout);
      return nullptr;
    } catch (const CLI::CallForVersion& version) {
      std::puts(version.what());
      return nullptr;
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
    std::string where = "aha";
    std::vector<std::string> names;
    for (const auto& entry : entries_) {
      names.push_back(entry.parser->get_name());
      if (names.back() == command) where += " " + command;
    }
    if (!command.empty() && command[0] != '-' && where == "aha")
      throw unknown_name_error("command", command, names);
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    throw input_error("{} (try {} --help)", message, where);
  }

  CLI::App app_;
  std::vector<Entry> entries_;
  std::string config_;
};

int run(int argc, char** argv) {
  Call call;
  CommandLine line(call);
  if (const Run* command = line.parse(argc, argv)) {
    start(call);
    (*command)(call);
  }
  return call.exit_code;
}

}  // namespace
}  // namespace aha

extern "C" int aha_main(int argc, char** argv) {
  std::string message;
  int code = 1;
  try {
    aha::set_library_environment();
    return aha::run(argc, argv);
  } catch (const aha::Error& error) {
    message = error.what();
    code = error.exit_code();
  } catch (const std::bad_alloc&) {
    message = "out of memory";
  } catch (const std::exception& error) {
    // libtorch's messages carry a stack trace behind the first line.
    message = error.what();
    message.erase(std::min(message.find('\n'), message.size()));
  }
  std::fprintf(stderr, "aha: %s\n", message.c_str());
  return code;
}
