// The verb behind `aha serve`: the page and the HTTP API (docs/http_api.md) on this machine.
//
// Models are loaded once and stay; HTTP threads parse and wait, two job threads compute (jobs.h). The server
// listens on loopback unless told otherwise; beyond it every request needs a token. It reads no file that a
// request names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/server/limits.h"

namespace aha {

struct ServeOptions {
  std::vector<std::string> targets;  // empty = the bundled CIFAR-10 classifiers
  std::string explainer, encoder;    // of the first target; empty = the bundled one of each
  std::string data;                  // samples; empty = those of the results, or of CIFAR-10 where they fit
  std::string results;               // a folder of `aha eval`
  std::string host = "127.0.0.1";
  int port = 8080;  // 0 = any that is free
  std::string token;
  ServerLimits limits;
};
Fields fields(ServeOptions& options);

// docs/http_api.md
std::string api_markdown();

// Loads, listens, tells `ready` the page's address, and answers until the context is canceled.
void serve(const ServeOptions& options, const std::function<void(const std::string& address)>& ready,
           const Context& context);

}  // namespace aha
