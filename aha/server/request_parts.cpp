#include "aha/server/request_parts.h"

#include <algorithm>
#include <cctype>

#include "aha/base/error.h"

namespace aha {
namespace {

bool is_part(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
}

constexpr int kDeepest = 4;

// Bytes of the UTF-8 character that begins here; 0 = none does.
size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80   ? 1
                        : first < 0xC2 ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  return length;
}

}  // namespace

std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path) {
  std::vector<std::string> parts;
  while (!pattern.empty()) {
    if (pattern[0] == '{') {
      pattern.remove_prefix(std::min(pattern.find('}'), pattern.size() - 1) + 1);
      const auto end = std::find_if_not(path.begin(), path.end(), is_part);
      if (end == path.begin()) return std::nullopt;
      parts.emplace_back(path.begin(), end);
      path.remove_prefix(parts.back().size());
    } else {
      if (path.empty() || path[0] != pattern[0]) return std::nullopt;
      pattern.remove_prefix(1);
      path.remove_prefix(1);
    }
  }
  if (!path.empty()) return std::nullopt;
  return parts;
}

void set_from_body(const Fields& fields, std::string_view body) {
  if (body.empty()) return;
  bool deep = false;
  const auto shallow = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deep = deep || depth > kDeepest;
    return !deep;
  };
  const auto json = nlohmann::json::parse(body, shallow, false);
  if (deep || !json.is_object()) throw input_error("body: expected a JSON object, found something else");
  set_all_from_json(fields, json, "body");
}

std::vector<float> keep_from_runs(std::span<const int> runs, int64_t pixels) {
  std::vector<float> keep;
  keep.reserve(static_cast<size_t>(pixels));
  float value = 1;
  for (const int run : runs) {
    if (run < 0 || run > pixels - std::ssize(keep))
      throw input_error("keep: expected runs of {} pixels together, found more, or a negative one", pixels);
    keep.insert(keep.end(), static_cast<size_t>(run), value);
    value = 1 - value;
  }
  if (std::ssize(keep) != pixels)
    throw input_error("keep: expected runs of {} pixels together, found {}", pixels, keep.size());
  return keep;
}

std::string safe_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_last_of("/\\") + 1, name.size()));
  std::string out;
  while (!name.empty()) {
    const size_t length = utf8_length(name);
    const bool control = length == 1 && (static_cast<unsigned char>(name[0]) < 0x20 || name[0] == 0x7F);
    if (out.size() + length > 100) break;
    if (length > 0 && !control) out += name.substr(0, length);
    name.remove_prefix(std::max<size_t>(length, 1));
  }
  return out.empty() || out == "." || out == ".." ? "image" : out;
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < b.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(b[i]) ^
                                        static_cast<unsigned char>(a.empty() ? 0 : a[i % a.size()]));
  return difference == 0;
}

std::string cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const size_t end = std::min(header.find(';'), header.size());
    std::string_view one = header.substr(0, end);
    while (!one.empty() && one[0] == ' ') one.remove_prefix(1);
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return std::string(one.substr(name.size() + 1));
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return "";
}

std::string bearer_token(std::string_view header) {
  constexpr std::string_view kScheme = "Bearer ";
  return header.starts_with(kScheme) ? std::string(header.substr(kScheme.size())) : "";
}

std::string host_of(std::string_view header) {
  std::string host;
  if (header.starts_with('[')) {
    const size_t end = header.find(']');
    if (end == std::string_view::npos) return "";
    host = header.substr(1, end - 1);
    header.remove_prefix(end + 1);
  } else {
    const size_t end = std::min(header.find(':'), header.size());
    host = header.substr(0, end);
    header.remove_prefix(end);
  }
  const bool port = header.size() > 1 && header.size() <= 6 && header[0] == ':' &&
                    header.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (!header.empty() && !port) return "";
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
  return host;
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string why_refused(const Caller& caller, bool any_host) {
  const std::string host = host_of(caller.host);
  if (host.empty() || (!any_host && !is_loopback(host)))
    return fmt::format("host: expected a name of this machine (localhost), found '{}'",
                       printable(caller.host));
  const auto origin_is_here = [&] {
    for (const std::string_view scheme : {"http://", "https://"})
      if (caller.origin.starts_with(scheme) && caller.origin.substr(scheme.size()) == caller.host)
        return true;
    return false;
  };
  if (!caller.origin.empty() && !origin_is_here())
    return fmt::format("origin: expected this server's own page, found '{}'", printable(caller.origin));
  if (!caller.fetch_site.empty() && caller.fetch_site != "same-origin" && caller.fetch_site != "none")
    return fmt::format("expected a request of this server's own page, found one of another site ({})",
                       printable(caller.fetch_site));
  return "";
}

}  // namespace aha
