#include "aha/server/serve.h"

#include <cstdlib>
#include <thread>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/server/api.h"
#include "aha/server/request_parts.h"

namespace aha {
namespace {

// The images to begin with: those named, those of the results, or CIFAR-10's where a classifier knows its
// classes.
std::unique_ptr<Dataset> samples_for(const ServeOptions& options, const ResultsFolder* results,
                                     const std::vector<WarmModel>& models) {
  if (!options.data.empty()) return open_dataset(options.data);
  if (results && results->results.contains("data") && results->results["data"].is_string()) try {
      return open_dataset(results->results["data"].get<std::string>());
    } catch (const Error&) {
      spdlog::info("the images of {} are not to be found; --data names them", options.results);
    }
  auto sample = open_dataset("cifar10:sample");
  for (const auto& model : models)
    if (model.target->info().class_names == sample->class_names()) return sample;
  return nullptr;
}

void check(const ServeOptions& options) {
  const bool here = is_loopback(options.host);
  if (!here && options.token.empty())
    throw input_error("--host {}: others can reach this server; expected --token WORDS that they must send",
                      printable(options.host));
  if (!options.token.empty() &&
      (options.token.size() < 8 || options.token.size() > 200 ||
       options.token.find_first_not_of(
           "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.~") != std::string::npos))
    throw input_error("--token: expected 8 to 200 letters, digits, - _ . or ~");
  for (const auto& target : options.targets)
    if (target.empty())
      throw input_error("--target: expected models separated by commas, found an empty name");
}

}  // namespace

Fields fields(ServerLimits& o) {
  return Fields()
      .add("upload-mb", o.upload_mb, "largest image or map that is taken")
      .range(1, 1024)
      .add("connections", o.connections, "clients at the same time")
      .range(1, 4096)
      .add("request-seconds", o.request_seconds, "until a request must have arrived")
      .range(0.1, 3600)
      .add("idle-seconds", o.idle_seconds, "between two requests of a connection")
      .range(0.1, 3600)
      .add("queue", o.queue, "jobs that wait; more are answered 503")
      .range(1, 10000)
      .add("job-seconds", o.job_seconds, "most that a job may take")
      .range(0.1, 86400)
      .add("kept-jobs", o.kept_jobs, "ended jobs that can be asked for")
      .range(1, 10000)
      .add("cache-mb", o.cache_mb, "memory for images and maps")
      .range(1, 1 << 20);
}

Fields fields(ServeOptions& o) {
  return Fields()
      .add("target", o.targets,
           "classifiers, separated by commas: bundled models, model directories, ARCH:FILE; default: the "
           "bundled ones of CIFAR-10")
      .add(
          "explainer", o.explainer,
          "a trained explainer of the first target: a bundled one or its directory; default: the bundled one")
      .add("encoder", o.encoder, "weights of the explainer's own encoder where they are not beside its card")
      .add("data", o.data, "a data set whose images can be picked; default: cifar10:sample where it fits")
      .add("results", o.results, "a folder of `aha eval`, to look at")
      .add("port", o.port, "0 = any that is free")
      .range(0, 65535)
      .add("host", o.host, "address to listen on; one beyond this machine needs --token")
      .add("token", o.token, "what every request must send; 8 letters and digits or more")
      .nest("max-", fields(o.limits));
}

void serve(const ServeOptions& options, const std::function<void(const std::string&)>& ready,
           const Context& context) {
  check(options);
  std::optional<ResultsFolder> results;
  if (!options.results.empty()) results = read_results(options.results);
  HttpServer server(options.limits);
  const int port =
      server.bind(options.host, options.port);  // a port that is taken is said before the loading
  auto targets = options.targets;
  if (targets.empty()) targets = {"cifar10-vit4", "cifar10-convnext"};
  auto models = load_models(targets, options.explainer, options.encoder, context);
  auto samples = samples_for(options, results ? &*results : nullptr, models);
  Workbench bench(std::move(models), std::move(samples), options.limits);
  JobQueue jobs(context, {options.limits.queue, options.limits.job_seconds, options.limits.kept_jobs});
  const char* web = std::getenv("AHA_WEB");
  Api api(bench, jobs, results ? &*results : nullptr,
          {options.token, !is_loopback(options.host), web ? web : ""}, options.limits);
  api.install(server);
  std::thread listening([&] { server.serve(); });
  const bool v6 = options.host.find(':') != std::string::npos;
  ready(fmt::format("http://{}{}{}:{}/{}", v6 ? "[" : "",
                    options.host == "127.0.0.1" ? "localhost" : options.host, v6 ? "]" : "", port,
                    options.token.empty() ? "" : "?token=" + options.token));
  while (!context.cancel->canceled() && listening.joinable())
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  jobs.stop();
  server.stop_all();
  listening.join();
}

}  // namespace aha
