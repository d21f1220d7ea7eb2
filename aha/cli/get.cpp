#include "aha/app/get.h"

#include "aha/base/error.h"
#include "aha/cli/command.h"

namespace aha {
namespace {

struct GetFlags {
  std::vector<std::string> words;
  GetOptions options;
};

Fields fields(GetFlags& f) {
  return Fields().add("from", f.options.from,
                      "take it from this archive or folder instead of the package registry");
}

void run(const GetFlags& flags, Call& call) {
  if (flags.words.size() != 1)
    throw input_error("expected `aha get NAME`, found `aha get {}`", fmt::join(flags.words, " "));
  get_and_print({flags.words[0], flags.options.from}, call);
}

}  // namespace

void get_and_print(const GetOptions& options, Call& call) {
  const Got got = get(options, call.context);
  if (call.common.json)
    return call.print({{"name", options.name},
                       {"kind", got.kind},
                       {"path", got.path},
                       {"was_there", got.was_there},
                       {"license", got.license}});
  fmt::print("{} {}; use it as {}\nlicense: {}\n", got.path, got.was_there ? "was there already" : "written",
             got.use, got.license);
}

Command get_command() {
  std::string names;
  for (const auto& one : gettable()) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  return {"get",
          "bring a public data set or model: " + names,
          "",
          with_flags<GetFlags>(run, {"NAME", &GetFlags::words, "of the data set or model"}),
          "  aha get resnet50-imagenet\n"
          "  aha get cifar10\n"
          "  aha get cifar10 --from cifar-10-binary.tar.gz",
          {},
          {"json", "quiet", "verbose"}};
}

}  // namespace aha
