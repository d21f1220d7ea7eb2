#include "aha/cli/command.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "aha/base/error.h"
#include "aha/base/log.h"

namespace aha {

Fields fields(CommonOptions& o) {
  return Fields()
      .add("device", o.device, "cpu, cuda or cuda:N; best = CUDA where present")
      .add("threads", o.threads, "worker threads; 0 = all cores")
      .range(0, 1024)
      .add("precision", o.precision,
           "f32: exact; bf16: fast where the CPU multiplies bf16 (AMX, AMD's AVX512-BF16)")
      .choices({"f32", "bf16"})
      .add("seed", o.seed, "seed of everything random")
      .range(0, 9e15)
      .add("batch-size", o.batch_size, "images per batch; 0 = the command's own choice")
      .range(0, 65536)
      .add("max-megapixels", o.max_megapixels, "images with more pixels are refused before they are decoded")
      .range(1e-6, 1e6)
      .add("json", o.json, "one JSON document on stdout, nothing else there")
      .add("quiet", o.quiet, "no progress, no remarks")
      .add("verbose", o.verbose, "say what was chosen and why");
}

void Call::print(const nlohmann::json& document) const {
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void Call::count_failures(int64_t failed, int64_t all) {
  if (failed == 0) return;
  spdlog::error("{} of {} images done, {} failed", all - failed, all, failed);
  exit_code = 1;
}

void flush_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw work_error("the output cannot be written: {}", errno ? std::strerror(errno) : "stdout failed");
}

void Declaration::add(const Fields& fields) {
  for (const Field& field : fields.list()) {
    const std::string flag = "--" + field.name;
    std::string help = field.help;
    if (std::holds_alternative<bool*>(field.slot)) {
      // "!": the same flag the other way round, for options that a recipe switches on.
      const std::string letter = field.name == "quiet" ? ",-q" : field.name == "verbose" ? ",-v" : "";
      app_.add_flag_function(
          flag + letter + ",!--no-" + field.name,
          [field, flag](int64_t times) { set_from_text(field, times > 0 ? "true" : "false", flag); }, help);
      continue;
    }
    app_.add_option_function<std::string>(
        flag, [field, flag](const std::string& text) { set_from_text(field, text, flag); }, help);
  }
  all_.nest("", fields);
}

void Declaration::positionals(const std::string& name, std::vector<std::string>& values,
                              const std::string& help, bool required) {
  words_ = required ? name + "..." : "[" + name + "...]";
  words_help_ = help;
  auto* option = app_.add_option(name, values, help);
  if (required) option->required();
}

}  // namespace aha
