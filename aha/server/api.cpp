#include "aha/server/api.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "aha/app/classify.h"
#include "aha/app/scrub.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/npy.h"
#include "aha/image/heatmap.h"
#include "aha/image/png.h"
#include "aha/methods/catalog.h"
#include "aha/methods/fitting.h"
#include "aha/metrics/catalog.h"
#include "aha/metrics/score_queue.h"
#include "aha/server/assets.h"
#include "aha/server/request_parts.h"
#include "aha/server/requests.h"

namespace aha {
namespace {

using Parts = std::vector<std::string>;
using httplib::Request;
using httplib::Response;

constexpr const char* kJson = "application/json";
constexpr const char* kCookie = "aha_token";
constexpr size_t kLongestPath = 512, kMostOptions = 32;

// Nothing but the page's own files, no frames, no forms elsewhere.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// No such image, map or job.
struct NotFound : Error {
  explicit NotFound(const std::string& message) : Error(ErrorKind::kInput, message) {}
};

void answer(Response& response, const nlohmann::ordered_json& json, int status = 200) {
  response.status = status;
  response.set_content(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", kJson);
  response.set_header("Cache-Control", "no-store");
}

void refuse(Response& response, int status, const std::string& why) {
  answer(response, {{"error", why}}, status);
  if (status == 503) response.set_header("Retry-After", "1");
}

// The body of a refused request is not read.
bool refuse_early(Response& response, int status, const std::string& why) {
  refuse(response, status, why);
  response.set_header("Connection", "close");
  close_after_answer();
  return false;
}

// Options from the query, and from a JSON body.
template <class Options>
Options options_from(const Request& request) {
  Options options;
  const Fields all = fields(options);
  for (const auto& [name, value] : request.params) {
    const Field* field = all.find(name);
    if (!field) throw unknown_name_error("option", name, all.names());
    set_from_text(*field, value, name);
  }
  if (request.get_header_value("Content-Type").starts_with(kJson)) set_from_body(all, request.body);
  return options;
}

bool has_image(const Request& request) {
  const std::string type = request.get_header_value("Content-Type");
  return type.starts_with("image/") || type.starts_with("application/octet-stream");
}

// "sample/17" of cifar10/sample/17, "cats/1.jpg" of /home/me/photos/cats/1.jpg
std::string end_of_path(const std::string& path) {
  const size_t last = path.rfind('/');
  if (last == std::string::npos || last == 0) return path;
  const size_t before = path.rfind('/', last - 1);
  return before == std::string::npos ? path : path.substr(before + 1);
}

int64_t number_from(const std::string& text) {
  if (text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    throw NotFound(fmt::format("expected a number, found '{}'", printable(text)));
  return std::stoll(text);
}

nlohmann::ordered_json json_from(const MethodRecord& record, const WarmModel& model) {
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  const auto method = record.make();
  const Fields all = method->fields();
  for (const Field& field : all.list()) {
    nlohmann::ordered_json one = {{"name", field.name},
                                  {"type", type_of(field)},
                                  {"default", json_from_field(field)},
                                  {"help", field.help}};
    if (field.low) one["low"] = *field.low;
    if (field.high) one["high"] = *field.high;
    if (!field.choices.empty()) one["choices"] = field.choices;
    options.push_back(one);
  }
  return {{"name", record.name},
          {"summary", record.summary},
          {"paper", record.paper},
          {"kind", heading_of(record.kind)},
          {"reads_class", record.reads_class},
          {"quick", is_quick(model, record.name, 0)},
          {"options", options}};
}

std::span<const float> values_of_map(const Tensor& map) {
  return {map.data_ptr<float>(), static_cast<size_t>(map.numel())};
}

}  // namespace

Api::Api(Workbench& bench, JobQueue& jobs, const ResultsFolder* results, const ApiSettings& settings,
         const ServerLimits& limits)
    : bench_(bench), jobs_(jobs), results_(results), settings_(settings), limits_(limits) {}

void Api::install(HttpServer& server) {
  server_ = &server;
  server.set_pre_routing_handler([this](const Request& request, Response& response) {
    return check(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                    : httplib::Server::HandlerResponse::Handled;
  });
  server.set_expect_100_continue_handler([this](const Request& request, Response& response) {
    return check(request, response) ? 100 : response.status;
  });
  const auto handle = [this](const Request& request, Response& response) { dispatch(request, response); };
  server.Get(".*", handle).Post(".*", handle).Delete(".*", handle);
  server.set_error_handler([](const Request&, Response& response) {
    if (response.body.empty())
      refuse(response, response.status,
             response.status == 413 ? "the body is larger than allowed"
                                    : "not a request that this server understands");
    if (!response.has_header("Connection")) response.set_header("Connection", "close");
    close_after_answer();
  });
  server.set_default_headers({{"Content-Security-Policy", kContentPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Cross-Origin-Opener-Policy", "same-origin"}});
}

// Before the body is read.
bool Api::check(const Request& request, Response& response) {
  if (request.path.size() > kLongestPath || request.params.size() > kMostOptions)
    return refuse_early(response, 414, "the address is too long");
  if (!let_in(request, response)) return false;
  const bool reads = request.method == "GET" || request.method == "HEAD";
  std::string allowed;
  const Route* found = nullptr;
  for (const auto& route : routes()) {
    if (!match_path(route.path, request.path)) continue;
    if (route.method == request.method || (reads && route.method == "GET")) found = &route;
    allowed += (allowed.empty() ? "" : ", ") + route.method;
  }
  if (!found && allowed.empty()) {
    if (reads && serve_page(request, response)) return false;
    return refuse_early(response, 404, fmt::format("nothing is at {}", printable(request.path)));
  }
  if (!found) {
    response.set_header("Allow", allowed);
    return refuse_early(response, 405, fmt::format("expected {}, found {}", allowed, request.method));
  }
  if (request.has_header("Range")) return refuse_early(response, 416, "parts of an answer are not to be had");
  if (request.has_header("Transfer-Encoding"))
    return refuse_early(response, 411, "expected a body with Content-Length, found one without");
  if (request.has_header("Content-Encoding"))
    return refuse_early(response, 415, "expected a body as it is, found a compressed one");
  const std::string length = request.get_header_value("Content-Length");
  if (request.get_header_value_count("Content-Length") > 1 || length.size() > 15 ||
      length.find_first_not_of("0123456789") != std::string::npos)
    return refuse_early(response, 400, "Content-Length: expected one number");
  const int64_t bytes = length.empty() ? 0 : std::stoll(length);
  if (found->body == BodyKind::kNone) {
    if (bytes > 0) return refuse_early(response, 400, "expected no body, found one");
    return true;
  }
  if (length.empty()) return refuse_early(response, 411, "expected a body with Content-Length, found none");
  const bool json = request.get_header_value("Content-Type").starts_with(kJson);
  const bool takes_bytes = found->body != BodyKind::kJson, takes_json = found->body != BodyKind::kMap;
  if (!(json && takes_json) && !(has_image(request) && takes_bytes))
    return refuse_early(response, 415,
                        fmt::format("Content-Type: expected {}{}{}, found '{}'", takes_json ? kJson : "",
                                    takes_json && takes_bytes ? " or " : "",
                                    found->body == BodyKind::kImageOrJson ? "image/*"
                                    : takes_bytes                         ? "application/octet-stream"
                                                                          : "",
                                    printable(request.get_header_value("Content-Type"))));
  const int64_t most = json ? kMostJsonBytes : int64_t{limits_.upload_mb} << 20;
  if (bytes > most)
    return refuse_early(response, 413, fmt::format("expected at most {} bytes, found {}", most, bytes));
  if (!reserve_body(bytes)) return refuse_early(response, 503, "too many images are being sent now");
  return true;
}

bool Api::let_in(const Request& request, Response& response) const {
  const std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin"),
                    site = request.get_header_value("Sec-Fetch-Site");
  // A link from elsewhere may open the page; it may not ask anything.
  const bool opens_page = request.method == "GET" && request.path == "/" && origin.empty();
  const std::string why = why_refused(
      {host, origin, opens_page ? std::string_view() : std::string_view(site)}, settings_.any_host);
  if (!why.empty()) return refuse_early(response, 403, why);
  if (settings_.token.empty()) return true;
  if (request.method == "GET" && request.path == "/" && request.has_param("token") &&
      same_secret(request.get_param_value("token"), settings_.token)) {
    response.set_header("Set-Cookie",
                        fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", kCookie, settings_.token));
    response.set_redirect("/");
    return false;
  }
  const bool knows = same_secret(bearer_token(request.get_header_value("Authorization")), settings_.token) ||
                     same_secret(cookie_value(request.get_header_value("Cookie"), kCookie), settings_.token);
  if (knows) return true;
  response.set_header("WWW-Authenticate", "Bearer");
  return refuse_early(response, 401,
                      "expected the token this server was started with: Authorization: Bearer TOKEN, or "
                      "/?token=TOKEN once in a browser");
}

bool Api::serve_page(const Request& request, Response& response) const {
  const Asset* asset = find_asset(request.path);
  if (!asset) return false;
  response.status = 200;
  if (settings_.web.empty())
    response.set_content(asset->content.data(), asset->content.size(), std::string(asset->type));
  else  // one of the page's own names, never the request's
    response.set_content(read_file(settings_.web + std::string(asset->path), 1 << 24),
                         std::string(asset->type));
  response.set_header("Cache-Control", "no-cache");
  return true;
}

void Api::dispatch(const Request& request, Response& response) {
  for (const auto& route : routes()) {
    const bool same = route.method == request.method || (request.method == "HEAD" && route.method == "GET");
    const auto parts = same ? match_path(route.path, request.path) : std::nullopt;
    if (!parts) continue;
    try {
      (this->*route.handle)(request, *parts, response);
    } catch (const QueueFull& error) {
      refuse(response, 503, error.what());
    } catch (const NotFound& error) {
      refuse(response, 404, error.what());
    } catch (const Error& error) {
      refuse(response,
             error.kind() == ErrorKind::kInput      ? 400
             : error.kind() == ErrorKind::kCanceled ? 503
                                                    : 500,
             error.what());
    } catch (const std::exception& error) {
      spdlog::error("{} {}: {}", request.method, request.path, error.what());
      refuse(response, 500, "the request failed");
    }
    return;
  }
  refuse(response, 404, "nothing is there");
}

WarmImage Api::known_image(const std::string& id) {
  if (auto image = bench_.image(id)) return *image;
  throw NotFound(fmt::format("image '{}' is not here (any more): bring it again", printable(id)));
}

WarmMap Api::known_map(const std::string& id) {
  if (auto map = bench_.map(id)) return *map;
  throw NotFound(fmt::format("map '{}' is not here (any more): explain again", printable(id)));
}

std::function<WarmImage()> Api::image_of(const Request& request, const std::string& id) {
  if (!has_image(request)) {
    if (id.empty()) throw input_error("image: expected an id, or an image as the body, found neither");
    return [image = known_image(id)] { return image; };
  }
  if (!id.empty()) throw input_error("image: expected an id, or an image as the body, found both");
  const std::string name = safe_name(request.has_param("name") ? request.get_param_value("name") : "image");
  const std::string own = Workbench::image_id(request.body, name);
  if (const auto known = bench_.image(own)) return [image = *known] { return image; };
  // A copy: the request is gone when its caller does not wait.
  return [this, own, name, body = request.body, room = reserved_body()] {
    return bench_.add_image(own, name, body);
  };
}

void Api::run(std::string what, bool is_short, JobQueue::Work work, Response& response, bool wait,
              int status) {
  const std::string id = jobs_.add(std::move(what), is_short, std::move(work));
  std::optional<JobView> job = jobs_.view(id);
  if (!wait) {
    response.set_header("Location", "/api/jobs/" + id);
    return answer(response, job ? json_from(*job) : nlohmann::ordered_json{{"job", id}}, 202);
  }
  while (job && !job->ended()) {
    if (client_gone() || server_->stopping()) {
      jobs_.cancel(id);
      return refuse(response, 503, "canceled");
    }
    job = jobs_.wait(id, job->version, std::chrono::milliseconds(100));
  }
  if (!job) return refuse(response, 503, "the answer was forgotten");
  if (job->state != JobState::kDone) return refuse(response, job->status, job->error);
  answer(response, job->result, status);
}

void Api::run_png(std::string what, std::function<std::string()> png, Response& response, bool keeps) {
  const auto made = std::make_shared<std::string>();
  run(
      std::move(what), true,
      [made, png](const Context&) {
        *made = png();
        return nlohmann::ordered_json();
      },
      response);
  if (response.status != 200) return;
  response.set_content(*made, "image/png");
  if (keeps) {
    response.headers.erase("Cache-Control");
    response.set_header("Cache-Control", "private, max-age=3600");
  }
}

void Api::get_models(const Request& request, const Parts&, Response& response) {
  nlohmann::ordered_json models = nlohmann::ordered_json::array();
  for (auto& model : bench_.models()) {
    const ClassifierInfo& info = model.target->info();
    models.push_back({{"name", model.name},
                      {"architecture", info.architecture},
                      {"size", info.input.size},
                      {"classes", info.classes},
                      {"class_names", info.class_names},
                      {"explainer", nullptr},
                      {"method", model.explainer       ? "aha"
                                 : model.quick.empty() ? "gradient"
                                                       : model.quick[0]},
                      {"sha256", info.sha256}});
    if (model.explainer) {
      const ModelCard& card = model.explainer->card;
      models.back()["explainer"] = {{"summary", card.summary}, {"sha256", card.sha256}};
    }
  }
  answer(response, {{"models", models},
                    {"samples", bench_.samples() ? bench_.samples()->size() : 0},
                    {"results", results_ != nullptr},
                    {"limits",
                     {{"upload_bytes", int64_t{limits_.upload_mb} << 20},
                      {"megapixels", limits_.megapixels},
                      {"methods", kMostMethodsCompared}}}});
}

void Api::get_methods(const Request& request, const Parts&, Response& response) {
  const auto options = options_from<ModelOptions>(request);
  const WarmModel& model = bench_.models()[bench_.model_index(options.model)];
  nlohmann::ordered_json methods = nlohmann::ordered_json::array();
  for (const auto& name : model.methods) methods.push_back(json_from(method_record(name), model));
  answer(response, {{"model", model.name}, {"methods", methods}});
}

void Api::get_samples(const Request& request, const Parts&, Response& response) {
  const auto options = options_from<SamplesOptions>(request);
  const Dataset* data = bench_.samples();
  if (!data) return answer(response, {{"data", nullptr}, {"size", 0}, {"samples", nlohmann::json::array()}});
  nlohmann::ordered_json samples = nlohmann::ordered_json::array();
  const auto names = data->class_names();
  for (int64_t i = options.first; i < std::min<int64_t>(data->size(), options.first + options.limit); ++i) {
    const int label = data->label(i);
    samples.push_back({{"sample", i},
                       {"name", end_of_path(data->id(i))},
                       {"label", label >= 0 && label < std::ssize(names) ? names[label] : ""},
                       {"url", fmt::format("/api/samples/{}.png", i)}});
  }
  answer(response, {{"data", without_folders(data->name())}, {"size", data->size()}, {"samples", samples}});
}

void Api::get_sample(const Request& request, const Parts& parts, Response& response) {
  const int64_t index = number_from(parts[0]);
  if (!bench_.samples() || index >= bench_.samples()->size())
    throw NotFound(fmt::format("there is no sample {}", index));
  run_png(
      "sample", [=, this] { return png_bytes(image_from_tensor(bench_.add_sample(index).inputs[0][0])); },
      response, false);
}

void Api::post_image(const Request& request, const Parts&, Response& response) {
  auto options = options_from<ImageOptions>(request);
  const auto describe = [sample = options.sample](const WarmImage& image) {
    nlohmann::ordered_json json = {
        {"image", image.id}, {"name", image.name}, {"width", image.width}, {"height", image.height}};
    if (sample >= 0) json["sample"] = sample;
    return json;
  };
  if (has_image(request) == (options.sample >= 0))
    throw input_error("expected an image as the body, or a sample, found {}",
                      has_image(request) ? "both" : "neither");
  if (options.sample >= 0)
    return run(
        "image", true, [=, this](const Context&) { return describe(bench_.add_sample(options.sample)); },
        response, true, 201);
  const auto image = image_of(request, "");
  run(
      "image", true, [=](const Context&) { return describe(image()); }, response, true, 201);
}

void Api::get_image(const Request& request, const Parts& parts, Response& response) {
  const auto options = options_from<ModelOptions>(request);
  const size_t model = bench_.model_index(options.model);
  const WarmImage image = known_image(parts[0]);
  run_png(
      "png", [=] { return png_bytes(image_from_tensor(image.inputs[model][0])); }, response);
}

void Api::get_reference(const Request& request, const Parts& parts, Response& response) {
  const auto options = options_from<ModelOptions>(request);
  const size_t model = bench_.model_index(options.model);
  const WarmImage image = known_image(parts[0]);
  const std::vector<std::string> names = {"black", "mean", "blur"};
  if (std::find(names.begin(), names.end(), parts[1]) == names.end())
    throw unknown_name_error("reference", parts[1], names);
  run_png(
      "png",
      [=, this] {
        const auto& info = bench_.models()[model].target->info();
        return png_bytes(image_from_tensor(scrub_reference(image.inputs[model], parts[1], info)[0]));
      },
      response);
}

void Api::post_classify(const Request& request, const Parts&, Response& response) {
  const auto options = options_from<ClassifyRequest>(request);
  const size_t model = bench_.model_index(options.work.model);
  const auto image = image_of(request, options.work.image);
  run(
      "classify", true,
      [=, this](const Context& context) {
        const WarmImage one = image();
        WarmModel& by = bench_.models()[model];
        const Tensor probs =
            probabilities(*by.target, one.inputs[model].to(torch_device(context)), context)[0];  // (C)
        nlohmann::ordered_json classes = nlohmann::ordered_json::array();
        for (const auto& c : top_classes(probs, options.topk, by.target->info(), one.name))
          classes.push_back(json_from(c));
        return nlohmann::ordered_json{
            {"image", one.id}, {"name", one.name}, {"model", by.name}, {"classes", classes}};
      },
      response, options.work.wait);
}

void Api::post_explain(const Request& request, const Parts&, Response& response) {
  const auto asked = options_from<ExplainRequest>(request);
  const size_t m = bench_.model_index(asked.work.model);
  WarmModel& model = bench_.models()[m];
  ExplainOptions options;
  options.method = !asked.method.empty() ? asked.method
                   : model.explainer     ? "aha"
                   : model.quick.empty() ? "gradient"
                                         : model.quick[0];
  options.wanted = asked.wanted;
  options.refine = asked.refine;
  options.score = asked.score;
  check_method(options.method);
  if (options.wanted != "predicted") class_from_text(options.wanted, model.target->info());
  method_of(options, model.by());  // what does not fit is refused before the work
  const auto image = image_of(request, asked.work.image);
  if (!asked.work.image.empty())
    if (const auto known = bench_.map(Workbench::map_id(image(), model.name, options)))
      return answer(response, known->json);
  run(
      "explain", is_quick(model, options.method, options.refine),
      [=, this](const Context& context) { return bench_.explain(image(), m, options, context).json; },
      response, asked.work.wait);
}

void Api::post_map(const Request& request, const Parts&, Response& response) {
  const auto asked = options_from<MapRequest>(request);
  const size_t model = bench_.model_index(asked.work.model);
  const WarmImage image = known_image(asked.work.image);
  run(
      "map", true,
      [=, this, body = request.body](const Context& context) {
        return bench_.add_map(body, image, model, asked.wanted, context).json;
      },
      response, asked.work.wait, 201);
}

void Api::get_map_json(const Request&, const Parts& parts, Response& response) {
  answer(response, known_map(parts[0]).json);
}

void Api::get_map_npy(const Request&, const Parts& parts, Response& response) {
  const WarmMap map = known_map(parts[0]);
  response.set_content(npy_bytes({map.map.size(0), map.map.size(1)}, values_of_map(map.map)),
                       "application/octet-stream");
  response.set_header("Cache-Control", "private, max-age=3600");
}

void Api::get_map_heat(const Request& request, const Parts& parts, Response& response) {
  const auto options = options_from<HeatOptions>(request);
  const WarmMap map = known_map(parts[0]);
  run_png(
      "png",
      [=] {
        return png_bytes(heat_image(values_of_map(map.map), static_cast<int>(map.map.size(1)),
                                    static_cast<int>(map.map.size(0)), options));
      },
      response);
}

void Api::get_map_overlay(const Request& request, const Parts& parts, Response& response) {
  const auto options = options_from<HeatOptions>(request);
  const WarmMap map = known_map(parts[0]);
  const WarmImage image = known_image(map.image);
  const size_t model = bench_.model_index(map.model);
  run_png(
      "png",
      [=] {
        return png_bytes(overlay(image_from_tensor(image.inputs[model][0]), values_of_map(map.map),
                                 static_cast<int>(map.map.size(1)), static_cast<int>(map.map.size(0)),
                                 options));
      },
      response);
}

void Api::post_score(const Request& request, const Parts&, Response& response) {
  const auto asked = options_from<ScoreRequest>(request);
  if (asked.map.empty() && (asked.keep.empty() || asked.image.empty() || asked.class_index < 0))
    throw input_error("expected map and k, or image, class and keep, found neither");
  std::optional<WarmMap> map;
  if (!asked.map.empty()) map = known_map(asked.map);
  const WarmImage image = known_image(map ? map->image : asked.image);
  const size_t model = bench_.model_index(map ? map->model : asked.model);
  run(
      "score", true,
      [=, this](const Context& context) {
        Classifier& target = bench_.models()[model].asked();
        const ScrubImage about{image.inputs[model].to(torch_device(context)),
                               asked.class_index >= 0 ? asked.class_index : map->chosen.index,
                               asked.reference};
        if (asked.keep.empty())
          return json_from(
              scrub(target, about, map->map, scrub_mode_from_text(asked.mode), asked.k, context));
        const int64_t H = about.pixels.size(2), W = about.pixels.size(3);
        const Tensor keep = torch::tensor(keep_from_runs(asked.keep, H * W)).view({H, W});
        return json_from(scrub(target, about, keep, context));
      },
      response);
}

void Api::post_curve(const Request& request, const Parts&, Response& response) {
  const auto asked = options_from<CurveRequest>(request);
  const WarmMap map = known_map(asked.map);
  const WarmImage image = known_image(map.image);
  const size_t model = bench_.model_index(map.model);
  run(
      "curve", true,
      [=, this](const Context& context) {
        const ScrubImage about{image.inputs[model].to(torch_device(context)), map.chosen.index,
                               asked.reference};
        return json_from(scrub_curve(bench_.models()[model].asked(), about, map.map, asked.steps, context));
      },
      response);
}

void Api::post_compare(const Request& request, const Parts&, Response& response) {
  const auto asked = options_from<CompareRequest>(request);
  const size_t m = bench_.model_index(asked.work.model);
  WarmModel& model = bench_.models()[m];
  const auto methods = asked.methods.empty() ? model.quick : asked.methods;
  if (std::ssize(methods) > kMostMethodsCompared)
    throw input_error("methods: expected at most {}, found {}", kMostMethodsCompared, methods.size());
  bool quick = true;
  for (const auto& method : methods) {
    check_method(method);
    make_method(method, model.by());  // what does not fit is refused before the work
    quick = quick && is_quick(model, method, 0);
  }
  if (asked.wanted != "predicted") class_from_text(asked.wanted, model.target->info());
  const auto image = image_of(request, asked.work.image);
  run(
      "compare", quick && model.target->info().input.size <= 64,
      [=, this](const Context& context) {
        return bench_.compare(image(), m, methods, asked.wanted, context);
      },
      response, asked.work.wait);
}

void Api::get_jobs(const Request&, const Parts&, Response& response) {
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  for (const auto& job : jobs_.all()) jobs.push_back(json_from(job));
  answer(response, {{"jobs", jobs}});
}

void Api::get_job(const Request&, const Parts& parts, Response& response) {
  const auto job = jobs_.view(parts[0]);
  if (!job) throw NotFound(fmt::format("there is no job '{}'", printable(parts[0])));
  answer(response, json_from(*job));
}

void Api::get_events(const Request&, const Parts& parts, Response& response) {
  if (!jobs_.view(parts[0])) throw NotFound(fmt::format("there is no job '{}'", printable(parts[0])));
  const auto version = std::make_shared<int64_t>(-1);
  response.set_header("Cache-Control", "no-store");
  response.set_chunked_content_provider(
      "text/event-stream", [this, version, id = parts[0]](size_t, httplib::DataSink& sink) {
        const auto job = *version < 0 ? jobs_.view(id) : jobs_.wait(id, *version, std::chrono::seconds(1));
        if (!job || server_->stopping()) {
          sink.done();
          return true;
        }
        std::string text = ": still here\n\n";
        if (job->version != *version)
          text = fmt::format("event: {}\ndata: {}\n\n", job->ended() ? "end" : "progress",
                             json_from(*job).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        *version = job->version;
        if (!sink.write(text.data(), text.size())) return false;
        if (job->ended()) sink.done();
        return true;
      });
}

void Api::delete_job(const Request&, const Parts& parts, Response& response) {
  if (!jobs_.cancel(parts[0])) throw NotFound(fmt::format("there is no job '{}'", printable(parts[0])));
  const auto job = jobs_.view(parts[0]);
  answer(response, job ? json_from(*job) : nlohmann::ordered_json{{"job", parts[0]}});
}

void Api::get_results(const Request&, const Parts&, Response& response) {
  if (!results_) throw NotFound("the server was started without --results");
  answer(response, results_->results);
}

// Maps are numbered image by image, in the order of the table.
void Api::get_results_map(const Request&, const Parts& parts, Response& response) {
  if (!results_) throw NotFound("the server was started without --results");
  const int64_t index = number_from(parts[0]);
  int64_t first = 0;
  for (const auto& image : results_->images) {
    const auto& figures = results_->figures_of.at(image);
    if (index >= first + std::ssize(figures)) {
      first += std::ssize(figures);
      continue;
    }
    const std::string file = figures[static_cast<size_t>(index - first)].map;
    if (file.empty()) break;
    int64_t sample = -1;
    if (const Dataset* data = bench_.samples())
      for (int64_t i = 0; i < data->size() && sample < 0; ++i)
        if (data->id(i) == image) sample = i;
    return run_png(
        "png",
        [=, this] {
          const NpyArray map = read_npy(file);
          if (map.shape.size() != 2 || static_cast<double>(map.values.size()) > 1e6 * limits_.megapixels)
            throw work_error("{}: expected a map (H, W), found another array", end_of_path(file));
          const int height = static_cast<int>(map.shape[0]), width = static_cast<int>(map.shape[1]);
          if (sample >= 0) {
            const Image photo = image_from_tensor(bench_.add_sample(sample).inputs[0][0]);
            if (photo.width == width && photo.height == height)
              return png_bytes(overlay(photo, map.values, width, height));
          }
          return png_bytes(heat_image(map.values, width, height));
        },
        response, false);
  }
  throw NotFound(fmt::format("the evaluation kept no map {}", index));
}

void Api::get_results_images(const Request& request, const Parts&, Response& response) {
  if (!results_) throw NotFound("the server was started without --results");
  const auto asked = options_from<ResultsRequest>(request);
  const auto figure = [&](const std::string& image) {
    for (const auto& one : results_->figures_of.at(image))
      if (one.method == asked.method && one.explained == asked.explained)
        if (const auto at = one.figures.find(asked.metric); at != one.figures.end()) return at->second;
    return std::nan("");
  };
  auto images = results_->images;
  if (!asked.method.empty()) {
    std::set<std::string> methods, metrics;
    for (const auto& image : images)
      for (const auto& one : results_->figures_of.at(image)) {
        methods.insert(one.method);
        for (const auto& [name, value] : one.figures) metrics.insert(name);
      }
    if (!methods.contains(asked.method))
      throw unknown_name_error("method", asked.method,
                               std::vector<std::string>(methods.begin(), methods.end()));
    if (!metrics.contains(asked.metric))
      throw unknown_name_error("metric", asked.metric,
                               std::vector<std::string>(metrics.begin(), metrics.end()));
    bool higher = true;
    for (const auto& metric : metric_catalog())
      if (metric.name == asked.metric) higher = metric.higher_is_better;
    const bool ascending = (asked.order == "worst") == higher;
    std::erase_if(images, [&](const auto& image) { return std::isnan(figure(image)); });
    std::stable_sort(images.begin(), images.end(), [&](const auto& a, const auto& b) {
      return ascending ? figure(a) < figure(b) : figure(a) > figure(b);
    });
  }
  std::map<std::string, int64_t> sample_of, first_map;  // by image
  if (const Dataset* data = bench_.samples())
    for (int64_t i = 0; i < data->size(); ++i) sample_of[data->id(i)] = i;
  int64_t maps = 0;
  for (const auto& image : results_->images) {
    first_map[image] = maps;
    maps += std::ssize(results_->figures_of.at(image));
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const int64_t last = std::min<int64_t>(std::ssize(images), int64_t{asked.first} + asked.limit);
  for (int64_t i = asked.first; i < last; ++i) {
    nlohmann::ordered_json figures = nlohmann::ordered_json::array();
    int64_t map = first_map.at(images[i]);
    for (const auto& one : results_->figures_of.at(images[i])) {
      figures.push_back({{"method", one.method}, {"class", one.explained}, {"figures", one.figures}});
      figures.back()["map"] = nullptr;
      if (!one.map.empty()) figures.back()["map"] = fmt::format("/api/results/maps/{}.png", map);
      ++map;
    }
    const auto sample = sample_of.find(images[i]);
    list.push_back({{"image", end_of_path(images[i])},
                    {"sample", sample == sample_of.end() ? -1 : sample->second},
                    {"figures", figures}});
  }
  answer(response, {{"total", images.size()}, {"metric", asked.metric}, {"images", list}});
}

}  // namespace aha
