// Many clients at once against `aha serve` in this process, on loopback, for a bounded time:
//
//   serve_load [CLIENTS [SECONDS]]     (100 clients, 60 s; at most 1000 and 600)
//
// Every client sends images that the server has not seen, and asks for their maps without refinement and
// score. Prints the time of the verb alone, the latency of one client beside it, then latencies and the
// process' memory (server and clients together) under load. Fails on any answer but 200 and 503 with
// Retry-After. Needs the bundled models.
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "aha/app/explain.h"
#include "aha/base/startup.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/server/serve.h"
#include "aha/tensor/tensor.h"

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double quantile(std::vector<double> times, double share) {
  if (times.empty()) return 0;
  std::sort(times.begin(), times.end());
  return times[std::min(times.size() - 1, static_cast<size_t>(share * static_cast<double>(times.size())))];
}

double resident_mb() {
  std::ifstream in("/proc/self/statm");
  double total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

std::string image_of(uint64_t number) {
  aha::Image image(32, 32);
  for (size_t i = 0; i < image.rgb.size(); ++i)
    image.rgb[i] = static_cast<uint8_t>((i * (1 + number % 97) + number / 97 + i / 96 * 5) % 251);
  return aha::png_bytes(image);
}

struct Tally {
  std::mutex guard;
  std::vector<double> times;
  std::atomic<int64_t> good = 0, busy = 0, wrong = 0;
};

void ask(httplib::Client& client, uint64_t number, Tally& tally) {
  const std::string image = image_of(number);
  const auto start = Clock::now();
  const auto found =
      client.Post("/api/explain?score=false&name=" + std::to_string(number), image, "image/png");
  if (found && found->status == 200) {
    ++tally.good;
    const std::lock_guard lock(tally.guard);
    tally.times.push_back(milliseconds_since(start));
  } else if (found && found->status == 503 && found->has_header("Retry-After")) {
    ++tally.busy;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  } else {
    ++tally.wrong;
    std::fprintf(stderr, "wrong: %s\n",
                 found ? found->body.c_str() : httplib::to_string(found.error()).c_str());
  }
}

// The verb as a program would call it: from the image's bytes to the map.
std::vector<double> verb_times(int count) {
  const aha::Context context;
  const auto target = aha::load_classifier("cifar10-vit4", {}, context);
  auto explainer = aha::explainer_for("", *target, context);
  const aha::MethodContext by{*target, &*explainer};
  aha::ExplainOptions options;
  options.score = false;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = image_of(1000000 + static_cast<uint64_t>(i));
    const auto start = Clock::now();
    const auto method = aha::method_of(options, by);
    const auto pixels = aha::input_from_image(aha::image_from_bytes(std::as_bytes(std::span(bytes)), "image"),
                                              target->info().input)
                            .unsqueeze(0);
    aha::explain_pixels(by, *method, pixels, {"image"}, options, context);
    times.push_back(milliseconds_since(start));
  }
  times.erase(times.begin(), times.begin() + count / 5);  // warming up
  return times;
}

}  // namespace

int main(int argc, char** argv) try {
  aha::prepare_process(argv);
  aha::keep_freed_memory();
  const int clients = std::clamp(argc > 1 ? std::atoi(argv[1]) : 100, 1, 1000);
  const int seconds = std::clamp(argc > 2 ? std::atoi(argv[2]) : 60, 1, 600);
  aha::Context context;
  context.quiet = true;
  aha::start_compute(context);
  const auto alone = verb_times(100);

  aha::ServeOptions options;
  options.targets = {"cifar10-vit4"};
  options.port = 0;
  options.limits.cache_mb = 16;  // full within seconds: memory has no reason to grow behind that
  options.limits.connections = 1100;
  std::promise<std::string> address;
  std::thread server([&] {
    aha::serve(
        options, [&](const std::string& found) { address.set_value(found); }, context);
  });
  const std::string found = address.get_future().get();
  const int port = std::stoi(found.substr(found.find(':', 7) + 1));

  Tally one;
  {
    httplib::Client client("localhost", port);
    client.set_keep_alive(true);
    client.set_tcp_nodelay(true);  // as curl and browsers do; else head and body come 40 ms apart
    for (uint64_t i = 0; i < 100; ++i) ask(client, i, one);
    one.times.erase(one.times.begin(), one.times.begin() + 20);
  }
  const double verb = quantile(alone, 0.5), http = quantile(one.times, 0.5);
  std::printf("verb alone        p50 %7.2f ms  p95 %7.2f ms\n", verb, quantile(alone, 0.95));
  std::printf("one client        p50 %7.2f ms  p95 %7.2f ms  (%.2f ms above the verb; allowed %.2f)\n", http,
              quantile(one.times, 0.95), http - verb, 0.1 * verb + 5);

  Tally many;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int c = 0; c < clients; ++c)
    threads.emplace_back([&, c] {
      httplib::Client client("localhost", port);
      client.set_keep_alive(true);
      client.set_tcp_nodelay(true);
      client.set_read_timeout(60);
      for (uint64_t i = 0; !stop; ++i) ask(client, 1000 + static_cast<uint64_t>(c) * 1000003 + i, many);
    });
  double early = 0;
  for (int second = 1; second <= seconds; ++second) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (second == std::min(10, seconds)) early = resident_mb();
    if (second % 10 == 0 || second == seconds)
      std::printf("%4d s  %7ld answers  %7ld busy  %ld wrong  %.0f MB\n", second, many.good.load(),
                  many.busy.load(), many.wrong.load(), resident_mb());
    std::fflush(stdout);
  }
  const double late = resident_mb();
  stop = true;
  for (auto& thread : threads) thread.join();
  context.cancel->cancel();
  server.join();
  std::printf("%d clients         p50 %7.2f ms  p95 %7.2f ms  %.0f answers/s\n", clients,
              quantile(many.times, 0.5), quantile(many.times, 0.95),
              static_cast<double>(many.good) / seconds);
  std::printf("memory after 10 s %.0f MB, at the end %.0f MB\n", early, late);
  return one.wrong + many.wrong == 0 && many.good > 0 ? 0 : 1;
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
