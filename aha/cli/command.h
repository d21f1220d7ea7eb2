// A command of `aha`: its name, one line, examples, and what to do.
//
// declare() puts the command's flags on its sub-parser and returns what runs after parsing. All flags come
// from Fields (base/options.h), so that the same names work on the command line and in the TOML file given by
// --config; the command line wins.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/options.h"

namespace CLI {
class App;
}

namespace aha {

// Flags that every command has.
struct CommonOptions {
  std::string device = "best";
  int threads = 0;
  std::string precision = "f32";
  int64_t seed = 0;
  int batch_size = 0;
  double max_megapixels = 100;
  bool json = false, quiet = false, verbose = false;
};
Fields fields(CommonOptions& options);

// One run of a command.
struct Call {
  Context context;
  CommonOptions common;
  int exit_code = 0;  // 1 = part of the work failed, and the results say which

  // Prints the one JSON document of this call.
  void print(const nlohmann::json& document) const;
  // Says "14 of 15 images ..." and makes the exit code 1 where some failed.
  void count_failures(int64_t failed, int64_t all);
};

// What was printed reaches stdout now. Work error where it cannot be written (disk full, closed pipe).
void flush_output();

using Run = std::function<void(Call&)>;

// What a command declares: its Fields, remembered so that --config can set them too.
class Declaration {
 public:
  explicit Declaration(CLI::App& app) : app_(app) {}
  CLI::App& app() { return app_; }
  void add(const Fields& fields);
  // A positional list of words ("IMG...").
  void positionals(const std::string& name, std::vector<std::string>& values, const std::string& help,
                   bool required);

  const Fields& all() const { return all_; }
  // "IMG...": as it stands in the usage line, and what it is; empty = no words.
  const std::string& words() const { return words_; }
  const std::string& words_help() const { return words_help_; }

 private:
  CLI::App& app_;
  Fields all_;
  std::string words_, words_help_;
};

struct Command {
  std::string name, summary;
  std::string examples;  // lines that run as they are, in a folder with `images` (kExampleImages)
  std::function<Run(Declaration&)> declare;
  std::string templates = {};  // lines with names of the user's own files
  // Flags that --help shows; --help-all has the others. Empty = all.
  std::vector<std::string> usual = {};
  // Of the flags that every command takes, those that this one has a use for.
  std::vector<std::string> common = {"device",     "threads", "precision", "seed",
                                     "batch-size", "json",    "quiet",     "verbose"};
};

// Gives the examples their images.
constexpr const char* kExampleImages = "aha data export cifar10:sample --limit 8 --out images";

// The words behind the flags of a command ("IMG..."): a member of its struct of flags.
template <class Flags>
struct Words {
  const char* name = "";
  std::vector<std::string> Flags::*list = nullptr;
  const char* help = "";
  bool required = true;
};

// declare() of a command whose flags are the fields() of one struct.
template <class Flags>
std::function<Run(Declaration&)> with_flags(void (*run)(const Flags&, Call&), Words<Flags> words = {}) {
  return [=](Declaration& d) -> Run {
    const auto flags = std::make_shared<Flags>();
    d.add(fields(*flags));
    if (words.list) d.positionals(words.name, (*flags).*words.list, words.help, words.required);
    return [=](Call& call) { run(*flags, call); };
  };
}

constexpr const char* kStrictHelp = "stop at the first image that fails instead of leaving it out";
constexpr const char* kImagesHelp = "images or folders of them; - reads one from standard input";

// Of `aha get` and `aha data get`.
struct GetOptions;
void get_and_print(const GetOptions& options, Call& call);

// One command per file.
Command models_command();
Command classify_command();
Command inspect_command();
Command explain_command();
Command train_command();
Command eval_command();
Command compare_command();
Command fit_command();
Command get_command();
Command data_command();
Command bench_command();
Command serve_command();
Command experiment_command();
Command export_command();

}  // namespace aha
