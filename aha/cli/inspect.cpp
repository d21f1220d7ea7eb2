#include "aha/app/inspect.h"

#include "aha/cli/command.h"

namespace aha {

namespace {

struct InspectFlags {
  InspectOptions inspect;
  std::vector<std::string> files;
};

Fields fields(InspectFlags& f) {
  return fields(f.inspect);
}

void run(const InspectFlags& flags, Call& call) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& file : flags.files) {
    const Inspection one = inspect(file, flags.inspect);
    if (call.common.json)
      all.push_back(one.json);
    else
      fmt::print("{}", one.text);
  }
  if (call.common.json) call.print(all.size() == 1 ? all[0] : all);
}

}  // namespace

Command inspect_command() {
  return {"inspect",
          "what a weight file, TorchScript file or model holds, which network it fits, its input",
          "  aha inspect cifar10-vit4\n"
          "  aha inspect --identity cifar10-vit4",
          with_flags<InspectFlags>(run, {"FILE", &InspectFlags::files,
                                         "weight files, TorchScript files, model directories, names"}),
          "  aha inspect vit_b_16-c867db91.pth\n"
          "  aha inspect --tensors model.safetensors",
          {},
          {"json", "quiet", "verbose"}};
}

}  // namespace aha
