// What the server reads of a request by itself, from hostile bytes: the first byte chooses the part, anything
// but an Error is a finding.
//
//   cmake --preset fuzz && ninja -C build/fuzz request_fuzz && build/fuzz/bin/request_fuzz
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aha/base/error.h"
#include "aha/server/request_parts.h"
#include "tests/fuzz/seeds.h"

namespace {

struct Options {
  std::string map, mode = "delete";
  int k = 0;
  bool wait = true;
  double share = 0;
  std::vector<int> keep;
  std::vector<std::string> methods;
};

aha::Fields fields(Options& o) {
  return aha::Fields()
      .add("map", o.map, "")
      .add("mode", o.mode, "")
      .choices({"delete", "insert"})
      .add("k", o.k, "")
      .range(0, 1e9)
      .add("wait", o.wait, "")
      .add("share", o.share, "")
      .range(0, 1)
      .add("keep", o.keep, "")
      .add("methods", o.methods, "");
}

void must(bool truth) {
  if (!truth) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  start_from(argc, argv,
             {"p/api/images/0a1b/blur.png",
              R"(b{"map":"0a","k":300,"mode":"insert","keep":[10,5,1009],"wait":false})",
              R"(b{"methods":["aha:T=3","ig"],"share":0.5})", "nC:\\photos\\caf\xc3\xa9.jpg",
              "hlocalhost:8080", "h[::1]:8080", "ca=1; aha_token=abc; b=2"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 'p':
        for (const char* pattern : {"/api/maps/{id}.npy", "/api/images/{id}/{reference}.png", "/{a}{b}", "{"})
          if (const auto parts = aha::match_path(pattern, text))
            for (const auto& part : *parts) must(part.find_first_of("/.%") == std::string::npos);
        break;
      case 'b': {
        Options options;
        aha::set_from_body(fields(options), text);
        must(options.k >= 0 && (options.mode == "delete" || options.mode == "insert"));
        must(aha::keep_from_runs(options.keep, 1024).size() == 1024);
        break;
      }
      case 'n': {
        const std::string name = aha::safe_name(text);
        must(!name.empty() && name.size() <= 100 && name.find_first_of("/\\\n\r") == std::string::npos);
        break;
      }
      case 'h':
        must(aha::why_refused({text, "", ""}, false).empty() == aha::is_loopback(aha::host_of(text)));
        aha::why_refused({"localhost:8080", text, text}, true);
        break;
      default:
        must(aha::same_secret(text, text));
        must(!aha::same_secret(aha::cookie_value(text, "aha_token"), "a-long-secret") ||
             text.find("a-long-secret") != std::string_view::npos);
        aha::bearer_token(text);
    }
  } catch (const aha::Error&) {
  }
  return 0;
}
