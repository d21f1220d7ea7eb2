#include "aha/app/records.h"

#include "aha/methods/catalog.h"

namespace aha {

std::vector<MethodOption> options_of(const MethodRecord& record) {
  const auto method = record.make();
  const Fields fields = method->fields();
  std::vector<MethodOption> options;
  for (const Field& field : fields.list())
    if (field.name != record.argument)
      options.push_back({field.name, type_of(field), field.help, json_from_field(field)});
  return options;
}

nlohmann::json json_from(const MethodRecord& record) {
  nlohmann::json options = nlohmann::json::array();
  for (const auto& option : options_of(record))
    options.push_back(
        {{"name", option.name}, {"type", option.type}, {"default", option.start}, {"help", option.help}});
  return {{"name", record.name},   {"usage", usage_of(record)},       {"summary", record.summary},
          {"paper", record.paper}, {"needs", record.needs},           {"note", record.note},
          {"options", options},    {"kind", heading_of(record.kind)}, {"reads_class", record.reads_class}};
}

nlohmann::json json_from(const MetricRecord& record) {
  return {{"name", record.name},
          {"summary", record.summary},
          {"higher_is_better", record.higher_is_better},
          {"parts", record.parts}};
}

}  // namespace aha
