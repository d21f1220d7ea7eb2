// Options declared once.
//
// A verb's options are a plain struct with defaults and one function that lists its fields:
//
//   struct BlurOptions { double sigma_px = 25; int kernel_px = 101; };
//   inline Fields fields(BlurOptions& o) {
//     return Fields().add("sigma", o.sigma_px, "width of the Gaussian in pixels").range(0, 1000)
//                    .add("kernel", o.kernel_px, "side of the kernel in pixels, odd").range(1, 1001);
//   }
//
// From that list follow the command-line flags (cli/command.h), the TOML recipe, the JSON of a run,
// `name:key=value`, the help and the range checks: a value outside its range, a wrong type or an unknown key
// never gets into the struct.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace aha {

struct Field {
  using Slot = std::variant<bool*, int*, int64_t*, double*, std::string*, std::vector<int>*,
                            std::vector<double>*, std::vector<std::string>*>;
  std::string name;  // as in TOML and JSON; the flag is --name
  Slot slot;
  std::string help;
  std::optional<double> low, high;   // inclusive
  std::vector<std::string> choices;  // empty = free
};

class Fields {
 public:
  template <class T>
  Fields& add(std::string name, T& slot, std::string help) {
    list_.push_back({std::move(name), &slot, std::move(help), {}, {}, {}});
    return *this;
  }
  // The next two speak of the field added last.
  Fields& range(double low, double high) {
    list_.back().low = low;
    list_.back().high = high;
    return *this;
  }
  Fields& choices(std::vector<std::string> choices) {
    list_.back().choices = std::move(choices);
    return *this;
  }
  // All fields of another struct, each name with a prefix ("refine-").
  Fields& nest(std::string_view prefix, Fields inner);

  const std::vector<Field>& list() const { return list_; }
  const Field* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::vector<Field> list_;
};

// Sets one field from text ("3", "true", "black,blur") or from JSON. `where` opens the message of a refusal
// ("--sigma", "recipe.toml").
void set_from_text(const Field& field, std::string_view text, std::string_view where);
void set_from_json(const Field& field, const nlohmann::json& value, std::string_view where);

// Every key must be a field; missing keys keep their defaults.
void set_all_from_json(const Fields& fields, const nlohmann::json& object, std::string_view where);

// "key=value:key=value", as methods take their options.
void set_all_from_spec(const Fields& fields, std::string_view spec, std::string_view where);

nlohmann::json json_from_field(const Field& field);
nlohmann::json json_from_fields(const Fields& fields);

// "INT in 1..1001", "black|mean|blur", "NUMBER,..."
std::string type_of(const Field& field);

}  // namespace aha
