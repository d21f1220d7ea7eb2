#include "aha/app/export_explainer.h"

#include <filesystem>

#include "aha/base/error.h"
#include "aha/explainer/explainer_onnx.h"
#include "aha/networks/preprocess.h"
#include "aha/networks/public_models.h"
#include "aha/onnx/builder.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

std::string license_of(const ModelCard& card) {
  return card.provenance.value("license", "");
}

// What somebody who has only the file needs to know.
void write_card(OnnxBuilder& g, const std::string& name, const ModelCard& card, const Classifier* target,
                const std::string& target_spec, int size) {
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) g.metadata(key, value);
  };
  add("name", fs::path(name).filename().string());
  add("summary", card.summary);
  add("sha256", card.sha256);
  add("license", license_of(card));
  add("target", card.target->name);
  add("target_sha256", card.target->sha256);
  if (const auto directory = target ? model_directory(target_spec) : std::nullopt)
    add("target_license", license_of(read_card(*directory)));
  add("encoder", card.encoder->architecture);
  add("encoder_sha256", card.encoder->sha256);
  const auto& names =
      target && !target->info().class_names.empty() ? target->info().class_names : card.classes;
  if (!names.empty()) add("classes", nlohmann::json(names).dump());
  // How a photo becomes the image; mean and std are in the graph.
  auto input = card_json_from_input(target ? target->info().input : card.input);
  input["size"] = size;
  add("input", input.dump());
}

}  // namespace

Fields fields(ExportOptions& o) {
  return Fields()
      .add("out", o.out, "the file to write, FILE.onnx")
      .add("opset", o.opset, "version of the ONNX operators")
      .range(13, 17)
      .add("weights", o.precision, "how the file holds its numbers; f16 is half as large and computed in f32")
      .choices({"f32", "f16"})
      .add("overwrite", o.overwrite, "replace a file that aha export did not make");
}

std::string target_to_export(const std::string& explainer, const std::string& given) {
  const auto directory = model_directory(explainer);
  if (!directory) throw unknown_model_error(explainer);
  const ModelCard card = read_card(*directory);
  if (card.kind != "explainer")
    throw input_error("{}: expected an explainer, found a {}", explainer, card.kind);
  const auto options = config_from_json<DecoderOptions>(card.network, explainer + ": network");
  if (const auto refusal = onnx_refusal(options); !refusal.empty())
    throw input_error("{}: {}", explainer, refusal);
  if (!given.empty()) return given;
  if (card.encoder->architecture != "target" && options.prior == "none") return "";
  const auto around = fs::weakly_canonical(*directory).parent_path().string();
  for (const auto& folder : {bundled_models_folder(), fetched_models_folder(), around})
    for (const auto& model : models_in(folder))
      if (model.card.sha256 == card.target->sha256)
        return model_directory(model.name) == model.directory ? model.name : model.directory;
  throw input_error("{}: its features are those of {} (sha256 {}); expected that classifier as --target",
                    explainer, card.target->name, card.target->sha256.substr(0, 12));
}

Exported export_explainer(const std::string& spec, LoadedExplainer& loaded, Classifier* target,
                          const std::string& target_spec, const ExportOptions& options) {
  if (options.out.empty()) throw input_error("--out: expected the file to write, FILE.onnx, found nothing");
  if (fs::is_directory(options.out))
    throw input_error("--out {}: expected a file, found a folder", options.out);
  if (!options.overwrite && fs::exists(options.out) && !is_onnx_of_aha(options.out))
    throw input_error("{}: exists and was not made by aha; --overwrite replaces it", options.out);
  const int size = target ? target->info().input.size : loaded.card.input.size;
  OnnxBuilder g({.opset = options.opset, .half = options.precision == "f16"});
  write_card(g, spec, loaded.card, target, target_spec, size);
  write_onnx(g, *loaded.explainer, target, size);
  g.save(options.out);
  return {options.out, target_spec, static_cast<int64_t>(fs::file_size(options.out)),
          loaded.explainer->decoder()->options.classes, size};
}

}  // namespace aha
