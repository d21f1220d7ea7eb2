#include "aha/server/serve.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "aha/base/log.h"
#include "aha/cli/command.h"

namespace aha {
namespace {

struct ServeFlags {
  ServeOptions serve;
  bool open = false;
};

Fields fields(ServeFlags& f) {
  return fields(f.serve).add("open", f.open, "open the page in the browser");
}

// The address is ours: scheme, host and port as they were parsed, and a token of safe characters.
void open_page(const std::string& address) {
  if (std::system(("xdg-open '" + address + "' >/dev/null 2>&1 &").c_str()) != 0)
    spdlog::warn("no browser could be opened; the page is {}", address);
}

void run(const ServeFlags& flags, Call& call) {
  const auto ready = [&](const std::string& address) {
    if (call.common.json)
      call.print({{"address", address}});
    else
      fmt::print("look: {}   (Ctrl-C ends it)\n", address);
    std::fflush(stdout);
    if (flags.open) open_page(address);
  };
  ServeOptions options = flags.serve;
  options.limits.megapixels = call.common.max_megapixels;
  serve(options, ready, call.context);
}

}  // namespace

Command serve_command() {
  return {"serve", "a page in the browser: see, scrub and compare explanations",
          "  aha serve\n"
          "  aha serve --target vit_ti_16:vit_tiny.safetensors --data folder:photos --open\n"
          "  aha serve --target cifar10-vit4 --results results",
          [](Declaration& d) -> Run {
            const auto flags = std::make_shared<ServeFlags>();
            d.add(fields(*flags));
            const auto markdown = std::make_shared<bool>(false);  // not in the help: for `make docs`
            d.app().add_flag("--api-markdown", *markdown)->group("");
            return [=](Call& call) { *markdown ? fmt::print("{}", api_markdown()) : run(*flags, call); };
          }};
}

}  // namespace aha
