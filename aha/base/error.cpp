#include "aha/base/error.h"

#include <algorithm>
#include <numeric>

#include "aha/base/nearest_name.h"

namespace aha {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replace});
    }
  }
  return row.back();
}

}  // namespace

std::string printable(std::string_view text, size_t most) {
  std::string out;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  if (text.size() > most) out += "...";
  return out;
}

std::string list_some(std::span<const std::string> names, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(most, names.size()); ++i) out += (i ? ", " : "") + printable(names[i]);
  if (names.size() > most) out += fmt::format(" and {} more", names.size() - most);
  return out;
}

std::string nearest_name(std::string_view found, std::span<const std::string> available) {
  std::string near;
  size_t best = std::max<size_t>(1, found.size() / 3) + 1;
  for (const auto& name : available) {
    const size_t distance = edit_distance(printable(found), name);
    if (distance < best) best = distance, near = name;
  }
  return near;
}

Error unknown_name_error(std::string_view what, std::string_view found,
                         std::span<const std::string> available) {
  const std::string near = nearest_name(found, available);
  return input_error("unknown {} '{}'; {}available: {}", what, printable(found),
                     near.empty() ? "" : fmt::format("did you mean '{}'? ", near), list_some(available, 60));
}

}  // namespace aha
