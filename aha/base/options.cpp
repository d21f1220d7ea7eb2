#include "aha/base/options.h"

#include <charconv>
#include <cmath>

#include "aha/base/error.h"

namespace aha {
namespace {

template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};

// Without an exponent: 100000, 0.000001.
std::string plain_number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  std::string text = fmt::format("{:.9f}", value);
  return text.erase(text.find_last_not_of('0') + 1);
}

// " in 1..100", " of 1 or more" where the upper end is only a guard against nonsense.
std::string range_text(const Field& f) {
  if (!f.low) return "";
  if (*f.high < 1e6) return fmt::format(" in {}..{}", plain_number(*f.low), plain_number(*f.high));
  return fmt::format(" of {} or more", plain_number(*f.low));
}

void check_number(const Field& f, double value, std::string_view where) {
  if (!std::isfinite(value) || (f.low && (value < *f.low || value > *f.high)))
    throw input_error(
        "{}: expected {}{}, found {}", where, type_of(f),
        f.high && value > *f.high && *f.high >= 1e6 ? fmt::format(" and at most {:g}", *f.high) : "", value);
}

void check_choice(const Field& f, const std::string& value, std::string_view where) {
  if (f.choices.empty()) return;
  for (const auto& c : f.choices)
    if (c == value) return;
  throw unknown_name_error(fmt::format("value for {}:", where), value, f.choices);
}

template <class T>
T number_from_text(const Field& f, std::string_view text, std::string_view where) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size())
    throw input_error("{}: expected {}, found '{}'", where, type_of(f), printable(text));
  check_number(f, static_cast<double>(value), where);
  return value;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (;;) {
    const size_t i = text.find(at);
    parts.push_back(text.substr(0, i));
    if (i == std::string_view::npos) return parts;
    text.remove_prefix(i + 1);
  }
}

template <class T>
T scalar_from_text(const Field& f, std::string_view text, std::string_view where) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
    if (text == "false" || text == "0" || text == "no" || text == "off") return false;
    throw input_error("{}: expected true or false, found '{}'", where, printable(text));
  } else if constexpr (std::is_same_v<T, std::string>) {
    check_choice(f, std::string(text), where);
    return std::string(text);
  } else {
    return number_from_text<T>(f, text, where);
  }
}

template <class T>
T scalar_from_json(const Field& f, const nlohmann::json& value, std::string_view where) {
  const auto wrong = [&] {
    return input_error("{}: expected {}, found {}", where, type_of(f), printable(value.dump()));
  };
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) throw wrong();
    return value.get<bool>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) throw wrong();
    check_choice(f, value.get<std::string>(), where);
    return value.get<std::string>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!value.is_number_integer()) throw wrong();
    const auto wide = value.get<int64_t>();
    if (wide < std::numeric_limits<T>::min() || wide > std::numeric_limits<T>::max()) throw wrong();
    check_number(f, static_cast<double>(wide), where);
    return static_cast<T>(wide);
  } else {
    if (!value.is_number()) throw wrong();
    check_number(f, value.get<double>(), where);
    return value.get<T>();
  }
}

}  // namespace

Fields& Fields::nest(std::string_view prefix, Fields inner) {
  for (auto& field : inner.list_) {
    field.name = std::string(prefix) + field.name;
    list_.push_back(std::move(field));
  }
  return *this;
}

const Field* Fields::find(std::string_view name) const {
  for (const auto& f : list_)
    if (f.name == name) return &f;
  return nullptr;
}

std::vector<std::string> Fields::names() const {
  std::vector<std::string> out;
  for (const auto& f : list_) out.push_back(f.name);
  return out;
}

void set_from_text(const Field& field, std::string_view text, std::string_view where) {
  std::visit(
      [&](auto* slot) {
        using T = std::remove_pointer_t<decltype(slot)>;
        if constexpr (is_vector<T>::value) {
          T values;
          for (const auto part : split(text, ','))
            values.push_back(scalar_from_text<typename T::value_type>(field, part, where));
          *slot = std::move(values);
        } else {
          *slot = scalar_from_text<T>(field, text, where);
        }
      },
      field.slot);
}

void set_from_json(const Field& field, const nlohmann::json& value, std::string_view where) {
  std::visit(
      [&](auto* slot) {
        using T = std::remove_pointer_t<decltype(slot)>;
        if constexpr (is_vector<T>::value) {
          if (!value.is_array())
            throw input_error("{}: expected a list, found {}", where, printable(value.dump()));
          T values;
          for (const auto& item : value)
            values.push_back(scalar_from_json<typename T::value_type>(field, item, where));
          *slot = std::move(values);
        } else {
          *slot = scalar_from_json<T>(field, value, where);
        }
      },
      field.slot);
}

void set_all_from_json(const Fields& fields, const nlohmann::json& object, std::string_view where) {
  if (!object.is_object()) throw input_error("{}: expected a table of options", where);
  for (const auto& [key, value] : object.items()) {
    const Field* field = fields.find(key);
    if (!field) throw unknown_name_error(fmt::format("option in {}:", where), key, fields.names());
    set_from_json(*field, value, fmt::format("{}: {}", where, key));
  }
}

void set_all_from_spec(const Fields& fields, std::string_view spec, std::string_view where) {
  for (const auto part : split(spec, ':')) {
    const size_t equal = part.find('=');
    if (equal == std::string_view::npos)
      throw input_error("{}: expected key=value, found '{}'; available: {}", where, printable(part),
                        list_some(fields.names(), 40));
    const Field* field = fields.find(part.substr(0, equal));
    if (!field)
      throw unknown_name_error(fmt::format("option of {}:", where), part.substr(0, equal), fields.names());
    set_from_text(*field, part.substr(equal + 1), fmt::format("{}:{}", where, field->name));
  }
}

nlohmann::json json_from_field(const Field& field) {
  return std::visit([](auto* slot) { return nlohmann::json(*slot); }, field.slot);
}

nlohmann::json json_from_fields(const Fields& fields) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& f : fields.list()) out[f.name] = json_from_field(f);
  return out;
}

std::string type_of(const Field& field) {
  return std::visit(
      [&](auto* slot) -> std::string {
        using T = std::remove_pointer_t<decltype(slot)>;
        std::string one;
        if (!field.choices.empty()) {
          for (const auto& c : field.choices) one += (one.empty() ? "" : "|") + c;
        } else if constexpr (std::is_same_v<T, bool>) {  // NOLINT(bugprone-branch-clone): one branch a type
          one = "BOOL";
        } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<std::string>>) {
          one = "TEXT";
        } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::vector<double>>) {
          one = "NUMBER";
        } else {
          one = "INT";
        }
        one += range_text(field);
        if constexpr (is_vector<T>::value) one += ",...";
        return one;
      },
      field.slot);
}

}  // namespace aha
