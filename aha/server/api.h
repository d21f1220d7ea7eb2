// The HTTP API: a table of routes, each with what it takes and gives, and the functions behind them, which
// only parse, call a verb and print. docs/http_api.md is written from the table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/evaluate/results_folder.h"
#include "aha/server/http_server.h"
#include "aha/server/jobs.h"
#include "aha/server/workbench.h"

namespace aha {

class Api;

// What a request may carry behind its headers.
enum class BodyKind { kNone, kJson, kImageOrJson, kMap };

struct Route {
  std::string method, path;  // "GET", "/api/maps/{id}.npy"
  std::string summary, answer, example;
  BodyKind body = BodyKind::kNone;
  // An option as it is when nobody sets it, for the documentation.
  struct Option {
    std::string name, type, help;
    nlohmann::json start;
  };
  std::vector<Option> options;
  using Handle = void (Api::*)(const httplib::Request&, const std::vector<std::string>& parts,
                               httplib::Response&);
  Handle handle = nullptr;
};
const std::vector<Route>& routes();

struct ApiSettings {
  std::string token;      // empty = none is asked for
  bool any_host = false;  // beyond loopback
  std::string web;        // a folder to serve the page from instead of the program's own files
};

class Api {
 public:
  Api(Workbench& bench, JobQueue& jobs, const ResultsFolder* results, const ApiSettings& settings,
      const ServerLimits& limits);

  // Makes the server answer.
  void install(HttpServer& server);

  void get_models(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_methods(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_samples(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_sample(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_image(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_image(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_reference(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_classify(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_explain(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_map(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_map_json(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_map_npy(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_map_heat(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_map_overlay(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_score(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_curve(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void post_compare(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_jobs(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_job(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_events(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void delete_job(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_results(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_results_map(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);
  void get_results_images(const httplib::Request&, const std::vector<std::string>&, httplib::Response&);

 private:
  bool check(const httplib::Request& request, httplib::Response& response);
  void dispatch(const httplib::Request& request, httplib::Response& response);
  bool let_in(const httplib::Request& request, httplib::Response& response) const;
  bool serve_page(const httplib::Request& request, httplib::Response& response) const;
  WarmImage known_image(const std::string& id);
  WarmMap known_map(const std::string& id);
  // The image that a request means: its body, or the one that its options name. Called on a job's thread.
  std::function<WarmImage()> image_of(const httplib::Request& request, const std::string& id);
  void run(std::string what, bool is_short, JobQueue::Work work, httplib::Response& response,
           bool wait = true, int status = 200);
  // What an id names never changes and may be kept by the browser; what a number names may be another image
  // after the next start.
  void run_png(std::string what, std::function<std::string()> png, httplib::Response& response,
               bool keeps = true);

  Workbench& bench_;
  JobQueue& jobs_;
  const ResultsFolder* results_;
  const ApiSettings settings_;
  const ServerLimits limits_;
  HttpServer* server_ = nullptr;
};

}  // namespace aha
