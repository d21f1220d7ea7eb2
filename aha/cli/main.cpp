// The product's door: a table of commands, and the only place where an error becomes an exit code.
#include <CLI/CLI.hpp>
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
      models_command(),
      classify_command(),
      inspect_command(),
      explain_command(),
      train_command(),
      eval_command(),
      compare_command(),
      fit_command(),
      data_command(),
      bench_command(),
  };
}

constexpr const char* kIntroduction =
    "Which pixels made an image classifier decide so? aha explains any classifier, and judges explanations.";

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

Device best_device() { return torch::cuda::is_available() ? Device{true, 0} : Device{}; }

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
  for (const auto& choice : library_choices()) spdlog::debug("{}={}: {}", choice.variable, choice.value, choice.why);
  spdlog::debug("OpenBLAS runs its {} core", openblas_core());
  spdlog::debug("{}", describe_cpu());
}

int run(int argc, char** argv) {
  CLI::App app(kIntroduction, "aha");
  app.set_version_flag("--version", "aha " AHA_VERSION);
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error&) { return std::string(); });

  struct Entry {
    CLI::App* parser;
    std::unique_ptr<Declaration> declaration;
    Run run;
  };
  Call call;
  std::vector<Entry> entries;
  std::string config;
  for (const Command& command : commands()) {
    CLI::App* parser = app.add_subcommand(command.name, command.summary);
    parser->footer("Examples:\n" + command.examples);
    auto declaration = std::make_unique<Declaration>(*parser);
    Run run = command.declare(*declaration);
    declaration->add(fields(call.common));
    parser->add_option("--config", config, "options from a TOML file; a flag on the command line wins")->type_name("FILE");
    entries.push_back({parser, std::move(declaration), std::move(run)});
  }
  std::string overview = "Examples:\n";
  for (const Command& command : commands()) overview += command.examples.substr(0, command.examples.find('\n') + 1);
  app.footer(overview + "\n`aha COMMAND --help` shows every flag of a command with examples.");

  try {
    if (const std::string path = config_path(argc, argv); !path.empty()) {
      const nlohmann::json options = json_from_toml(path);
      for (auto& entry : entries) {
        if (argc < 2 || entry.parser->get_name() != argv[1]) continue;
        const std::string unknown = first_unknown(options, entry.declaration->all());
        for (const auto& other : entries)
          if (!unknown.empty() && first_unknown(options, other.declaration->all()).empty())
            throw input_error("{}: expected options of aha {}, found '{}' and others of aha {}", path, argv[1], unknown,
                              other.parser->get_name());
        set_all_from_json(entry.declaration->all(), options, path);
      }
    }
    app.parse(argc, argv);
    for (auto& entry : entries)
      if (entry.parser->parsed()) {
        start(call);
        entry.run(call);
      }
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::puts(version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    std::string where = "aha";
    std::vector<std::string> names;
    for (const auto& entry : entries) {
      names.push_back(entry.parser->get_name());
      if (argc > 1 && names.back() == argv[1]) where += " " + names.back();
    }
    if (argc > 1 && argv[1][0] != '-' && where == "aha") throw unknown_name_error("command", argv[1], names);
    std::string message = error.what();
    for (auto& c : message)
      if (c == '\n') c = ' ';
    throw input_error("{} (try {} --help)", message, where);
  }
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
