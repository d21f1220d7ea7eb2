// The parts of a request that aha reads itself (the rest is cpp-httplib's): paths, ids, JSON bodies, masks,
// and the headers that say who asks. They come from anybody: everything here ends with a value or an input
// error. Knows nothing of torch or HTTP.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aha/base/options.h"

namespace aha {

// The parts of a path that stand for {..} in a pattern: ("/api/maps/{id}.npy", "/api/maps/0a1b.npy") ->
// {"0a1b"}. A part is one or more of [0-9A-Za-z_-]; nothing where the path does not fit.
std::optional<std::vector<std::string>> match_path(std::string_view pattern, std::string_view path);

// Sets the fields from a JSON object: every key must be one. Nothing is set from an empty body.
void set_from_body(const Fields& fields, std::string_view body);

// Lengths of runs, visible and hidden pixels in turn, visible first -> 1 and 0 for each of `pixels`.
std::vector<float> keep_from_runs(std::span<const int> runs, int64_t pixels);

// What a client calls its image, for messages and downloads: no folders, no control characters, 100 bytes of
// UTF-8 at most; "image" where nothing is left.
std::string safe_name(std::string_view name);

// Takes the same time wherever they differ.
bool same_secret(std::string_view a, std::string_view b);

// The value of a cookie, or of `Authorization: Bearer`; empty where there is none.
std::string cookie_value(std::string_view header, std::string_view name);
std::string bearer_token(std::string_view header);

// "example.org" of "example.org:8080", "::1" of "[::1]:8080"; empty where it is no host.
std::string host_of(std::string_view header);
bool is_loopback(std::string_view host);

// A web page elsewhere must not drive a server on this machine: the name it was reached by is this machine's
// (a foreign name may point here), and whoever names an origin names this one.
struct Caller {
  std::string_view host, origin, fetch_site;  // headers; empty where absent
};
// Empty, or why not. `any_host`: the server listens beyond loopback and a token protects it.
std::string why_refused(const Caller& caller, bool any_host);

}  // namespace aha
