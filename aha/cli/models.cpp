#include "aha/base/options.h"
#include "aha/cli/command.h"
#include "aha/evaluate/protocol.h"
#include "aha/methods/catalog.h"
#include "aha/metrics/catalog.h"
#include "aha/networks/catalog.h"

namespace aha {
namespace {

nlohmann::json json_from(const BundledModel& model) {
  const ModelCard& card = model.card;
  nlohmann::json json = {{"name", model.name},
                         {"kind", card.kind},
                         {"summary", card.summary},
                         {"architecture", card.architecture},
                         {"classes", card.classes.size()},
                         {"sha256", card.sha256}};
  if (card.target) json["target"] = card.target->name;
  if (card.encoder) json["encoder"] = card.encoder->architecture;
  return json;
}

nlohmann::json json_from(const MethodRecord& record) {
  const auto method = record.make();
  nlohmann::json options = nlohmann::json::array();
  const Fields fields = method->fields();
  for (const Field& field : fields.list())
    options.push_back({{"name", field.name},
                       {"type", type_of(field)},
                       {"default", json_from_field(field)},
                       {"help", field.help}});
  return {{"name", record.name},
          {"summary", record.summary},
          {"paper", record.paper},
          {"needs", record.needs},
          {"options", options}};
}

nlohmann::json json_from(const MetricRecord& record) {
  return {{"name", record.name},
          {"summary", record.summary},
          {"higher_is_better", record.higher_is_better},
          {"parts", record.parts}};
}

nlohmann::json json_from(const Protocol& protocol) {
  Protocol copy = protocol;
  nlohmann::json json = json_from_fields(fields(copy));
  json["name"] = protocol.name;
  return json;
}

template <class Records>
nlohmann::json array_from(const Records& records) {
  nlohmann::json array = nlohmann::json::array();
  for (const auto& record : records) array.push_back(json_from(record));
  return array;
}

std::vector<Protocol> protocols() {
  std::vector<Protocol> list;
  for (const auto& name : protocol_names()) list.push_back(protocol_named(name));
  return list;
}

nlohmann::json json_from_all() {
  nlohmann::json known = nlohmann::json::array();
  for (const auto& a : architectures())
    known.push_back({{"name", a.name}, {"kind", a.kind}, {"summary", a.summary}});
  return {{"bundled", array_from(bundled_models())},
          {"architectures", known},
          {"methods", array_from(method_catalog())},
          {"metrics", array_from(metric_catalog())},
          {"protocols", array_from(protocols())}};
}

std::string options_text(const MethodRecord& record) {
  const auto method = record.make();
  std::vector<std::string> options;
  const Fields fields = method->fields();
  for (const Field& field : fields.list()) {
    const auto value = json_from_field(field);
    options.push_back(field.name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return fmt::format("{}", fmt::join(options, ":"));
}

void print_all() {
  const auto bundled = bundled_models();
  fmt::print("Bundled models ({}):\n", bundled.empty() ? "none" : bundled_models_folder());
  for (const auto& model : bundled)
    fmt::print("  {:<26} {:<11} {}{}\n", model.name, model.card.kind, model.card.summary,
               model.card.target ? " (for " + model.card.target->name + ")" : "");
  for (const std::string kind : {"classifier", "encoder"}) {
    fmt::print("\nKnown {}s, to be given as NAME:FILE with public weights:\n", kind);
    for (const auto& a : architectures())
      if (a.kind == kind) fmt::print("  {:<26} {}\n", a.name, a.summary);
  }
  fmt::print("Any other classifier: script:FILE.pt (TorchScript)\n");
  fmt::print("\nMethods, with their options; blur=SIGMA_PX smooths the maps of any:\n");
  for (const auto& record : method_catalog()) {
    fmt::print("  {:<26} {}{}\n", record.name, record.summary,
               record.needs.empty() ? "" : "; needs " + record.needs);
    if (const std::string options = options_text(record); !options.empty())
      fmt::print("  {:<26} {}:{}\n", "", record.name, options);
  }
  fmt::print("\nMetrics:\n");
  for (const auto& record : metric_catalog())
    fmt::print("  {:<26} {}; {} is better\n", record.name, record.summary,
               record.higher_is_better ? "higher" : "lower");
  fmt::print("\nProtocols:\n");
  for (const auto& protocol : protocols()) fmt::print("  {:<26} {}\n", protocol.name, protocol.summary);
}

}  // namespace

Command models_command() {
  return {"models", "what there is: bundled models, known architectures, methods, metrics, protocols",
          "  aha models\n"
          "  aha models --json",
          [](Declaration&) -> Run {
            return [](Call& call) { call.common.json ? call.print(json_from_all()) : print_all(); };
          }};
}

}  // namespace aha
