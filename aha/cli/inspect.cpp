#include "aha/app/inspect.h"

#include "aha/cli/command.h"

namespace aha {

namespace {

struct InspectFlags {
  bool tensors = false;
  std::vector<std::string> files;
};

Fields fields(InspectFlags& f) {
  return Fields().add("tensors", f.tensors, "list every tensor");
}

void run(const InspectFlags& flags, Call& call) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& file : flags.files) {
    const WeightSummary summary = summarize_weights(file);
    if (call.common.json)
      all.push_back(json_from_summary(summary));
    else
      fmt::print("{}", text_from_summary(summary, flags.tensors));
  }
  if (call.common.json) call.print(all.size() == 1 ? all[0] : all);
}

}  // namespace

Command inspect_command() {
  return {"inspect", "what is in a weight file, which network it fits, what input it expects",
          "  aha inspect vit_b_16-c867db91.pth\n"
          "  aha inspect --tensors model.safetensors",
          with_flags<InspectFlags>(run, {"FILE", &InspectFlags::files, "weight files"})};
}

}  // namespace aha
