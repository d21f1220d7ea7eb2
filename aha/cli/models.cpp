#include <CLI/CLI.hpp>

#include <span>

#include "aha/app/get.h"
#include "aha/app/records.h"
#include "aha/base/options.h"
#include "aha/base/terminal.h"
#include "aha/cli/command.h"
#include "aha/evaluate/protocol.h"
#include "aha/methods/catalog.h"
#include "aha/metrics/catalog.h"
#include "aha/networks/catalog.h"
#include "aha/networks/public_models.h"

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
  nlohmann::json to_get = nlohmann::json::array();
  for (const auto& one : gettable())
    to_get.push_back({{"name", one.name}, {"summary", one.summary}, {"license", one.license}});
  return {{"bundled", array_from(bundled_models())},
          {"fetched", array_from(models_in(fetched_models_folder()))},
          {"gettable", to_get},
          {"architectures", known},
          {"methods", array_from(method_catalog())},
          {"metrics", array_from(metric_catalog())},
          {"protocols", array_from(protocols())}};
}

// Calls each(kind, its records) in the catalog's order.
template <class Each>
void for_each_kind(const Each& each) {
  const auto& all = method_catalog();
  for (size_t first = 0, last = 0; first < all.size(); first = last) {
    while (last < all.size() && all[last].kind == all[first].kind) ++last;
    each(all[first].kind, std::span(all).subspan(first, last - first));
  }
}

// A name and what it is, wrapped where the terminal ends.
void print_entry(const std::string& name, const std::string& text) {
  constexpr size_t kColumn = 33;
  fmt::print("  {:<30} {}\n", name, wrapped(text, static_cast<size_t>(terminal_width(1)), kColumn));
}

void print_methods() {
  const auto more = [](const std::string& text) {
    if (!text.empty()) print_entry("", text);
  };
  for_each_kind([&](MethodKind kind, std::span<const MethodRecord> records) {
    fmt::print("\nMethods: {}\n", heading_of(kind));
    for (const auto& record : records) {
      print_entry(usage_of(record), record.summary + (record.needs.empty() ? "" : "; needs " + record.needs));
      std::string options;
      for (const auto& option : options_of(record)) options += ":" + option.name + "=" + option.start_text();
      if (!options.empty()) more(usage_of(record) + options);
      more(record.paper);
      more(record.note);
    }
  });
  fmt::print("\nForms of any method:\n");
  for (const auto& form : method_forms()) print_entry(form.spec, form.summary);
}

std::string in_cell(const std::string& text) {  // of a Markdown table
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

// "a map" -> " A map."
std::string sentence(std::string text) {
  if (text.empty()) return "";
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return " " + text + (text.ends_with('.') ? "" : ".");
}

std::string markdown_from(const MethodRecord& record) {
  std::string out = fmt::format("\n### `{}`\n\n", usage_of(record));
  out += sentence(record.summary).substr(1) + sentence(record.paper);
  if (!record.needs.empty()) out += sentence("needs " + record.needs);
  if (!record.reads_class) out += " The map does not depend on the class.";
  out += "\n";
  if (!record.note.empty()) out += "\n" + sentence(record.note).substr(1) + "\n";
  const auto options = options_of(record);
  if (options.empty()) return out;
  out += "\n| option | default | values | meaning |\n| --- | --- | --- | --- |\n";
  for (const auto& option : options)
    out += fmt::format("| `{}` | `{}` | {} | {} |\n", option.name, option.start_text(), in_cell(option.type),
                       in_cell(option.help));
  return out;
}

// docs/methods.md
std::string methods_markdown() {
  std::string out =
      "# Methods\n\n"
      "This page is written by `make docs` from the records of `aha/methods`.\n\n"
      "A method turns an image and a class into a map, one number for each pixel, higher = more important.\n"
      "`--method` of `aha explain` and `--methods` of `aha compare` and `aha eval` take `NAME` or\n"
      "`NAME:option=value:option=value`. A method that does not fit the target is refused with the list of\n"
      "those that do. Forms of any method:\n\n| form | what it is |\n| --- | --- |\n";
  for (const auto& form : method_forms()) out += fmt::format("| `{}` | {} |\n", form.spec, form.summary);
  for_each_kind([&](MethodKind kind, std::span<const MethodRecord> records) {
    out += fmt::format("\n## {}\n", heading_of(kind));
    for (const auto& record : records) out += markdown_from(record);
  });
  return out;
}

void print_all() {
  const auto print_models = [](const std::vector<BundledModel>& models) {
    for (const auto& model : models)
      print_entry(model.name, fmt::format("{:<11} {}{}", model.card.kind, model.card.summary,
                                          model.card.target ? " (for " + model.card.target->name + ")" : ""));
  };
  const auto bundled = bundled_models(), fetched = models_in(fetched_models_folder());
  fmt::print("Bundled models ({}):\n", bundled.empty() ? "none" : bundled_models_folder());
  print_models(bundled);
  if (!fetched.empty()) fmt::print("\nFetched models ({}):\n", fetched_models_folder());
  print_models(fetched);
  fmt::print("\nTo be had with `aha get NAME`:\n");
  for (const auto& one : gettable()) print_entry(one.name, one.summary);
  for (const std::string kind : {"classifier", "encoder"}) {
    fmt::print("\nKnown {}s, to be given as NAME:FILE with public weights:\n", kind);
    for (const auto& a : architectures())
      if (a.kind == kind) print_entry(a.name, a.summary);
  }
  fmt::print("Any other classifier: onnx:FILE.onnx, or script:FILE.pt (TorchScript)\n");
  print_methods();
  fmt::print("\nMetrics:\n");
  for (const auto& record : metric_catalog())
    print_entry(record.name, fmt::format("{}; {} is better", record.summary,
                                         record.higher_is_better ? "higher" : "lower"));
  fmt::print("\nProtocols:\n");
  for (const auto& protocol : protocols()) print_entry(protocol.name, protocol.summary);
}

}  // namespace

Command models_command() {
  return {"models",
          "what there is: bundled models, known architectures, methods, metrics, protocols",
          "  aha models\n"
          "  aha models --json",
          [](Declaration& d) -> Run {
            auto markdown = std::make_shared<bool>(false);  // not in the help: for `make docs`
            d.app().add_flag("--methods-markdown", *markdown)->group("");
            return [markdown](Call& call) {
              if (*markdown)
                fmt::print("{}", methods_markdown());
              else if (call.common.json)
                call.print(json_from_all());
              else
                print_all();
            };
          },
          "",
          {},
          {"json", "quiet", "verbose"}};
}

}  // namespace aha
