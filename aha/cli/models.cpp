#include "aha/models/catalog.h"

#include "aha/cli/command.h"

namespace aha {
namespace {

nlohmann::json json_from_all() {
  nlohmann::json bundled = nlohmann::json::array(), known = nlohmann::json::array();
  for (const auto& model : bundled_models())
    bundled.push_back({{"name", model.name}, {"kind", model.card.kind}, {"architecture", model.card.architecture},
                       {"summary", model.card.summary}, {"classes", model.card.classes.size()}, {"sha256", model.card.sha256}});
  for (const auto& a : architectures()) known.push_back({{"name", a.name}, {"kind", a.kind}, {"summary", a.summary}});
  return {{"bundled", bundled}, {"architectures", known}};
}

void print_all() {
  const auto bundled = bundled_models();
  fmt::print("Bundled models ({}):\n", bundled.empty() ? "none" : bundled_models_folder());
  for (const auto& model : bundled) fmt::print("  {:<26} {:<11} {}\n", model.name, model.card.kind, model.card.summary);
  fmt::print("\nKnown architectures, to be given as NAME:FILE with public weights:\n");
  for (const auto& a : architectures()) fmt::print("  {:<26} {:<11} {}\n", a.name, a.kind, a.summary);
  fmt::print("\nAny other classifier: script:FILE.pt (TorchScript)\n");
}

}  // namespace

Command models_command() {
  return {"models", "what there is: bundled models, known architectures",
          "  aha models\n"
          "  aha models --json",
          [](Declaration&) -> Run {
            return [](Call& call) { call.common.json ? call.print(json_from_all()) : print_all(); };
          }};
}

}  // namespace aha
