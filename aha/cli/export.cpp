#include "aha/app/export_explainer.h"

#include "aha/base/error.h"
#include "aha/cli/command.h"
#include "aha/cli/target_options.h"

namespace aha {
namespace {

struct ExportFlags {
  std::vector<std::string> words;
  TargetOptions target;
  std::string encoder;
  ExportOptions options;
};

Fields fields(ExportFlags& f) {
  return fields(f.target).add("encoder", f.encoder, kEncoderHelp).nest("", fields(f.options));
}

void run(const ExportFlags& flags, Call& call) {
  if (flags.words.size() != 1)
    throw input_error("expected one explainer, found {}: {}", flags.words.size(),
                      fmt::join(flags.words, " "));
  const std::string& explainer = flags.words[0];
  TargetOptions wanted = flags.target;
  wanted.target = target_to_export(explainer, wanted.target);
  std::unique_ptr<Classifier> target;
  if (!wanted.target.empty()) target = load_target(wanted, call.context);
  auto loaded = load_explainer(explainer, target.get(), call.context, flags.encoder);
  const Exported made = export_explainer(explainer, loaded, target.get(), wanted.target, flags.options);
  if (call.common.json)
    return call.print({{"file", made.file},
                       {"bytes", made.bytes},
                       {"target", made.target.empty() ? nlohmann::json() : nlohmann::json(made.target)},
                       {"classes", made.classes},
                       {"size", made.size},
                       {"opset", flags.options.opset}});
  fmt::print("{} written, {:.1f} MB, opset {}\n", made.file, static_cast<double>(made.bytes) / 1e6,
             flags.options.opset);
  fmt::print("  in   image [N, 3, {0}, {0}] float32, RGB in [0, 1]; class [N] int64{1}\n", made.size,
             made.target.empty() ? "" : ", -1 = the predicted one");
  fmt::print("  out  map [N, {0}, {0}]{1}\n", made.size,
             made.target.empty() ? "" : fmt::format("; logits [N, {}]; predicted [N]", made.classes));
}

}  // namespace

Command export_command() {
  return {"export",
          "an explainer as one ONNX file: image and class in, map out, with no aha at all",
          "  aha export aha-cifar10-vit4 --out vit4-explainer.onnx\n"
          "  aha export aha-cifar10-vit4-independent --target cifar10-vit4 --weights f16 --out small.onnx",
          with_flags<ExportFlags>(run, {"EXPLAINER", &ExportFlags::words, "a bundled one or its directory"}),
          "  aha export my-explainer --target resnet50:resnet50.pth --opset 13 --out my-explainer.onnx",
          {},
          {"json", "quiet", "verbose"}};
}

}  // namespace aha
