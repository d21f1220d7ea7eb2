// What a client can make the server do at most.
#pragma once

#include <cstdint>

#include "aha/base/options.h"

namespace aha {

struct ServerLimits {
  int upload_mb = 32;           // of one image or map
  double megapixels = 50;       // of one image, from its header
  int connections = 256;        // open at the same time
  double request_seconds = 15;  // until a request has arrived whole, and until a client has taken its answer
  double idle_seconds = 10;     // between two requests of a connection
  int queue = 64;               // jobs that wait
  double job_seconds = 300;     // of one job
  int kept_jobs = 256;          // finished ones that can be asked for
  int cache_mb = 512;           // images and maps; the longest unused go first
};
Fields fields(ServerLimits& limits);

constexpr int64_t kMostJsonBytes = 1 << 20;
constexpr int64_t kMostMethodsCompared = 16;

}  // namespace aha
