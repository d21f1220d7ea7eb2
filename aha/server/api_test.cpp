// The server over real sockets on loopback: every route, wrong requests, slow and vanished clients.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "aha/base/npy.h"
#include "aha/evaluate/evaluate.h"
#include "aha/evaluate/report.h"
#include "aha/image/png.h"
#include "aha/server/api.h"
#include "aha/server/request_parts.h"
#include "aha/server/serve.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kJsonType = "application/json";
// Long enough for any test; canceled by it.
constexpr const char* kLongMethod = "rise:masks=50000";

// A server of its own in this process.
class Served {
 public:
  explicit Served(ServeOptions options) {
    options.port = 0;
    std::promise<std::string> address;
    thread_ = std::thread([this, options, &address] {
      serve(
          options, [&](const std::string& found) { address.set_value(found); }, context_);
    });
    const std::string found = address.get_future().get();
    port = std::stoi(found.substr(found.find(':', 7) + 1));
  }
  ~Served() {
    context_.cancel->cancel();
    thread_.join();
  }

  httplib::Client client() const {
    httplib::Client client("localhost", port);
    client.set_read_timeout(600);
    client.set_keep_alive(true);
    return client;
  }

  int port = 0;

 private:
  Context context_;
  std::thread thread_;
};

ServeOptions small_options() {
  ServeOptions options;
  options.targets = {"cifar10-vit4"};
  options.limits.upload_mb = 1;
  options.limits.request_seconds = 2;
  options.limits.idle_seconds = 5;
  options.limits.queue = 16;
  return options;
}

Served& server() {
  static Served one(small_options());
  return one;
}

// One with an evaluation of four images, whose maps were kept.
Served& results_server() {
  static Served one([] {
    const std::string folder = checks::fresh_folder("served_results");
    const Context context;
    const auto target = load_classifier("cifar10-vit4", {}, context);
    const auto data = slice(open_dataset("cifar10:sample"), {.limit = 4});
    EvaluateOptions evaluation;
    evaluation.methods = {"center", "gradcam"};
    evaluation.metrics = {"ins-del"};
    evaluation.timing_runs = 0;
    evaluation.keep_maps = true;
    write_results(evaluate({*target, nullptr}, *data, evaluation, folder, context), folder);
    ServeOptions options = small_options();
    options.results = folder;
    options.data = "cifar10:sample";
    return options;
  }());
  return one;
}

// The route with a name in place of each part of its path.
std::string path_of(const Route& route) {
  std::string path = route.path;
  for (size_t at; (at = path.find('{')) != std::string::npos;) {
    const std::string part = path.substr(at, path.find('}') - at + 1);
    path.replace(at, part.size(), part == "{reference}" ? "black" : part == "{index}" ? "0" : "a1");
  }
  return path;
}

// A frog-like image of any seed.
std::string png_of(int seed) {
  Image image(32, 32);
  for (size_t i = 0; i < image.rgb.size(); ++i)
    image.rgb[i] = static_cast<uint8_t>((i * (7 + static_cast<size_t>(seed)) + i / 96 * 5) % 251);
  return png_bytes(image);
}

Json json_of(const httplib::Result& result, int status = 200) {
  if (!result) {
    ADD_FAILURE() << "no answer: " << httplib::to_string(result.error());
    return {};
  }
  EXPECT_EQ(result->status, status) << result->body;
  EXPECT_EQ(result->get_header_value("Content-Type"), kJsonType);
  return Json::parse(result->body, nullptr, false);
}

Json post(httplib::Client& client, const std::string& path, const Json& body, int status = 200) {
  return json_of(client.Post(path, body.dump(), kJsonType), status);
}

// A socket of one's own, for requests that no library sends.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    const timeval patience{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RawClient() { close(); }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool send(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
  }
  void end_sending() { ::shutdown(socket_, SHUT_WR); }
  // All until the server closes.
  std::string rest() {
    std::string all;
    char some[4096];
    for (ssize_t got; (got = ::recv(socket_, some, sizeof some, 0)) > 0;)
      all.append(some, static_cast<size_t>(got));
    return all;
  }

 private:
  int socket_;
};

TEST(Server, EveryRouteDoesWhatItSays) {
  auto client = server().client();
  std::set<std::string> seen;
  const auto note = [&](const std::string& method, const std::string& path) {
    for (const auto& route : routes())
      if (route.method == method && match_path(route.path, path.substr(0, path.find('?'))))
        seen.insert(method + " " + route.path);
    return path;
  };
  const auto get = [&](const std::string& path, int status = 200) {
    return json_of(client.Get(note("GET", path)), status);
  };
  const auto get_png = [&](const std::string& path) {
    const auto found = client.Get(note("GET", path));
    ASSERT_TRUE(found);
    ASSERT_EQ(found->status, 200) << path << found->body;
    EXPECT_TRUE(found->body.starts_with("\x89PNG")) << path;
  };
  const Json models = get("/api/models");
  EXPECT_EQ(models["models"][0]["name"], "cifar10-vit4");
  EXPECT_EQ(models["models"][0]["class_names"][3], "cat");
  EXPECT_EQ(models["models"][0]["method"], "aha");
  const Json methods = get("/api/methods?model=cifar10-vit4");
  for (const auto& method : methods["methods"]) EXPECT_NE(method["name"], "maps");
  EXPECT_EQ(get("/api/samples?first=2&limit=3")["samples"][0]["sample"], 2);
  get_png("/api/samples/0.png");

  const std::string bytes = png_of(1);
  const Json image = json_of(client.Post(note("POST", "/api/images?name=frog.png"), bytes, "image/png"), 201);
  EXPECT_EQ(image["width"], 32);
  EXPECT_EQ(image["name"], "frog.png");
  const std::string id = image["image"];
  EXPECT_EQ(post(client, "/api/images", {{"sample", 0}}, 201)["name"], "cifar10/sample/0");
  get_png("/api/images/" + id + ".png");
  get_png("/api/images/" + id + "/blur.png");

  const Json classes = post(client, note("POST", "/api/classify"), {{"image", id}, {"topk", 3}})["classes"];
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_GE(classes[0]["probability"].get<double>(), classes[1]["probability"].get<double>());
  const Json by_body = json_of(client.Post("/api/classify?topk=3&name=frog.png", bytes, "image/png"));
  EXPECT_EQ(by_body["classes"], classes);
  EXPECT_EQ(by_body["image"], id);

  const Json made = post(client, note("POST", "/api/explain"), {{"image", id}});
  EXPECT_EQ(made["class"]["index"], classes[0]["index"]);
  const std::string map = made["map"]["id"];
  const auto npy = client.Get(note("GET", "/api/maps/" + map + ".npy"));
  ASSERT_TRUE(npy);
  const NpyArray array = npy_from_bytes(std::as_bytes(std::span(npy->body)), "map");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(get("/api/maps/" + map + ".json"), made);
  get_png("/api/maps/" + map + ".heat.png?scale=rank&colors=turbo");
  get_png("/api/maps/" + map + ".overlay.png?opacity=0.3");

  const Json curve = post(client, note("POST", "/api/curve"), {{"map", map}, {"steps", 10}});
  EXPECT_EQ(curve["k"].size(), 11u);
  EXPECT_EQ(curve["deletion"][3], made["curves"]["black"]["top"][3]);
  EXPECT_EQ(curve["insertion"][3], made["curves"]["black"]["bottom"][7]);
  const Json asked = {{"map", map}, {"k", 307}};
  EXPECT_NEAR(post(client, note("POST", "/api/score"), asked)["probability"].get<double>(),
              curve["deletion"][3].get<double>(), 1e-6);
  // The same pixels by hand: those that come before the others.
  std::vector<int> order(1024), runs;
  for (int i = 0; i < 1024; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return array.values[a] > array.values[b]; });
  std::vector<bool> hidden(1024);
  for (int i = 0; i < 307; ++i) hidden[order[i]] = true;
  for (int i = 0, length = 0; i < 1024; ++i, ++length)
    if (hidden[i] == (runs.size() % 2 == 0)) {
      runs.push_back(length);
      length = 0;
    }
  int covered = 0;
  for (const int run : runs) covered += run;
  runs.push_back(1024 - covered);
  const Json by_hand = {{"image", id}, {"class", classes[0]["index"]}, {"keep", runs}};
  EXPECT_NEAR(post(client, "/api/score", by_hand)["probability"].get<double>(),
              curve["deletion"][3].get<double>(), 1e-6);

  const Json given =
      json_of(client.Post(note("POST", "/api/maps?image=" + id), npy->body, "application/octet-stream"), 201);
  EXPECT_EQ(post(client, "/api/curve", {{"map", given["map"]["id"]}}), curve);
  const Json compared =
      post(client, note("POST", "/api/compare"), {{"image", id}, {"methods", {"aha", "gradient"}}});
  ASSERT_EQ(compared["methods"].size(), 2u);
  EXPECT_EQ(compared["methods"][0]["deletion"], made["deletion"]);
  EXPECT_EQ(compared["methods"][1]["method"], "gradient");

  EXPECT_GE(get("/api/jobs")["jobs"].size(), 5u);
  const Json begun =
      post(client, "/api/explain", {{"image", id}, {"method", kLongMethod}, {"wait", false}}, 202);
  const std::string job = begun["job"];
  std::string events;
  std::thread listener([&, port = server().port] {
    httplib::Client other("localhost", port);
    other.set_read_timeout(600);
    other.Get("/api/jobs/" + job + "/events", [&](const char* data, size_t size) {
      events.append(data, size);
      return true;
    });
  });
  note("GET", "/api/jobs/j1/events");
  while (!get("/api/jobs/" + job).contains("progress"))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  // A small question is answered while the long job runs.
  EXPECT_EQ(post(client, "/api/classify", {{"image", id}, {"topk", 3}})["classes"], classes);
  EXPECT_EQ(get("/api/jobs/" + job)["state"], "running");
  json_of(client.Delete(note("DELETE", "/api/jobs/" + job)));
  listener.join();
  EXPECT_THAT(events, HasSubstr("event: progress\ndata: {"));
  EXPECT_THAT(events, HasSubstr("\"what\":\"rise\""));
  EXPECT_THAT(events, HasSubstr("event: end\ndata: {"));
  EXPECT_THAT(events, HasSubstr("\"state\":\"canceled\""));

  get("/api/results", 404);  // started without
  get("/api/results/images", 404);
  get("/api/results/maps/0.png", 404);
  for (const auto& route : routes())
    EXPECT_TRUE(seen.contains(route.method + " " + route.path)) << route.method << " " << route.path;
}

TEST(Server, OpensAnEvaluationWithItsMaps) {
  auto client = results_server().client();
  EXPECT_EQ(json_of(client.Get("/api/models"))["results"], true);
  const Json results = json_of(client.Get("/api/results"));
  EXPECT_EQ(results["rows"].size(), 2u);
  const std::string path = "/api/results/images?method=gradcam&metric=ins-del&order=";
  const Json worst = json_of(client.Get(path + "worst"));
  ASSERT_EQ(worst["images"].size(), 4u);
  EXPECT_EQ(worst["total"], 4);
  std::vector<double> figures;
  std::set<std::string> maps;
  for (const Json& image : worst["images"]) {
    ASSERT_EQ(image["figures"].size(), 2u);
    for (const Json& one : image["figures"]) {
      if (one["method"] == "gradcam") figures.push_back(one["figures"]["ins-del"]);
      maps.insert(one["map"].get<std::string>());
    }
    EXPECT_EQ(
        json_of(client.Post("/api/images", Json{{"sample", image["sample"]}}.dump(), kJsonType), 201)["name"],
        "cifar10/" + image["image"].get<std::string>());
  }
  EXPECT_TRUE(std::is_sorted(figures.begin(), figures.end()));
  EXPECT_EQ(maps.size(), 8u) << "each method has its own map of each image";
  std::set<std::string> pictures;
  for (const auto& map : maps) {
    const auto found = client.Get(map);
    EXPECT_TRUE(found->body.starts_with("\x89PNG")) << map;
    pictures.insert(found->body);
    EXPECT_EQ(found->get_header_value("Cache-Control"), "no-store") << "another folder has other maps";
  }
  EXPECT_EQ(pictures.size(), 8u);
  const Json best = json_of(client.Get(path + "best&limit=1&first=1"));
  ASSERT_EQ(best["images"].size(), 1u);
  EXPECT_EQ(best["images"][0]["image"], worst["images"][2]["image"]);
  for (const char* none :
       {"/api/results/maps/8.png", "/api/results/maps/x.png", "/api/results/maps/99999999999999999999.png"})
    json_of(client.Get(none), 404);
  EXPECT_THAT(json_of(client.Get("/api/results/images?method=gradcam&metric=beauty"), 400)["error"],
              HasSubstr("ins-del"));
  EXPECT_THAT(json_of(client.Get("/api/results/images?method=gradcm"), 400)["error"], HasSubstr("gradcam"));
}

TEST(Server, AnIdMayBeKeptByTheBrowserAndANumberMayNot) {
  auto client = server().client();
  const std::string id = json_of(client.Post("/api/images", png_of(3), "image/png"), 201)["image"];
  const auto image = client.Get("/api/images/" + id + ".png"), sample = client.Get("/api/samples/0.png");
  EXPECT_EQ(image->get_header_value_count("Cache-Control"), 1u);
  EXPECT_EQ(image->get_header_value("Cache-Control"), "private, max-age=3600");
  EXPECT_EQ(sample->get_header_value("Cache-Control"), "no-store");
}

TEST(Server, ServesThePageWithAStrictPolicy) {
  auto client = server().client();
  const auto page = client.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->get_header_value("Content-Security-Policy"), HasSubstr("default-src 'none'"));
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_THAT(page->body, HasSubstr("<script type=\"module\" src=\"/app.js\">"));
  EXPECT_EQ(client.Get("/app.js")->get_header_value("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(client.Get("/app.css")->status, 200);
  for (const char* path :
       {"/../etc/passwd", "/etc/passwd", "/index.html/..", "/api", "/api/", "/api/maps/../models"})
    EXPECT_EQ(client.Get(path)->status, 404) << path;
  EXPECT_EQ(client.Get("/" + std::string(2000, 'x'))->status, 414);
}

TEST(Server, RefusesOtherMethods) {
  for (const std::string method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
    for (const auto& route : routes()) {
      std::string path = route.path, allowed;
      for (size_t at; (at = path.find('{')) != std::string::npos;)
        path.replace(at, path.find('}') - at + 1, "a1");
      for (const auto& other : routes())
        if (match_path(other.path, path)) allowed += other.method + " ";
      if (allowed.find(method) != std::string::npos) continue;
      auto client = server().client();
      httplib::Request request;
      request.method = method;
      request.path = path;
      const auto answer = client.send(request);
      ASSERT_TRUE(answer) << method << path;
      EXPECT_EQ(answer->status, 405) << method << " " << path;
      EXPECT_FALSE(answer->get_header_value("Allow").empty());
    }
}

TEST(Server, SaysWhatIsWrongWithARequest) {
  auto client = server().client();
  const std::string id = json_of(client.Post("/api/images?name=a.png", png_of(2), "image/png"), 201)["image"];
  const std::string map = post(client, "/api/explain", {{"image", id}, {"score", false}})["map"]["id"];
  struct Wrong {
    std::string path;
    Json body;
    int status;
    std::string says;
  };
  const std::vector<Wrong> wrongs = {
      {"/api/classify", {{"image", "0123"}}, 404, "not here"},
      {"/api/classify", Json::object(), 400, "image"},
      {"/api/classify", {{"image", id}, {"topk", 0}}, 400, "topk"},
      {"/api/classify", {{"image", id}, {"topk", "many"}}, 400, "topk"},
      {"/api/classify", {{"image", id}, {"nonsense", 1}}, 400, "nonsense"},
      {"/api/classify", {{"image", 3}}, 400, "image"},
      {"/api/classify", {{"image", id}, {"model", "/etc/passwd"}}, 400, "model"},
      {"/api/classify", Json::array(), 400, "JSON object"},
      {"/api/explain", {{"image", id}, {"class", "unicorn"}}, 400, "unicorn"},
      {"/api/explain", {{"image", id}, {"class", "10"}}, 400, "0..9"},
      {"/api/explain", {{"image", id}, {"method", "gradcm"}}, 400, "gradcam"},
      {"/api/explain", {{"image", id}, {"method", "maps:/etc"}}, 400, "files"},
      {"/api/explain", {{"image", id}, {"method", "inverted:maps:/etc"}}, 400, "files"},
      {"/api/explain", {{"image", id}, {"method", "rise:masks=x"}}, 400, "masks"},
      {"/api/explain", {{"image", id}, {"method", "ig"}, {"refine", 2}}, 400, "aha"},
      {"/api/explain", {{"image", id}, {"refine", 101}}, 400, "refine"},
      {"/api/compare",
       {{"image", id}, {"methods", std::vector<std::string>(17, "center")}},
       400,
       "at most 16"},
      {"/api/score", {{"map", "zz"}}, 404, "not here"},
      {"/api/score", {{"map", map}, {"k", 1025}}, 400, "0..1024"},
      {"/api/score", {{"map", map}, {"k", -1}}, 400, "k"},
      {"/api/score", {{"map", map}, {"mode", "burn"}}, 400, "mode"},
      {"/api/score", {{"map", map}, {"reference", "pink"}}, 400, "reference"},
      {"/api/score", {{"map", map}, {"keep", {3}}}, 400, "1024"},
      {"/api/score", {{"map", map}, {"class", 10}}, 400, "0..9"},
      {"/api/score", Json::object(), 400, "expected map"},
      {"/api/curve", {{"map", map}, {"steps", 1}}, 400, "steps"},
      {"/api/images", {{"sample", 300}}, 400, "0..299"},
      {"/api/images", Json::object(), 400, "sample"},
  };
  for (const auto& wrong : wrongs)
    EXPECT_THAT(post(client, wrong.path, wrong.body, wrong.status)["error"].get<std::string>(),
                HasSubstr(wrong.says))
        << wrong.path << wrong.body;
  for (const std::string path : {"/api/jobs/j999", "/api/jobs/j999/events", "/api/maps/00.npy",
                                 "/api/images/00.png", "/api/samples/300.png", "/api/samples/x.png"})
    json_of(client.Get(path), 404);
  json_of(client.Delete("/api/jobs/j999"), 404);
  json_of(client.Get("/api/images/" + id + "/pink.png"), 400);
  json_of(client.Get("/api/samples?limit=0"), 400);
  json_of(client.Get("/api/models?model=x&y=1"), 200);  // takes no options
  EXPECT_THAT(json_of(client.Post("/api/images", "not an image", "image/png"), 400)["error"],
              HasSubstr("image"));
  EXPECT_THAT(json_of(client.Post("/api/images", png_of(2).substr(0, 300), "image/png"), 400)["error"],
              HasSubstr("image"));
  json_of(client.Post("/api/maps?image=" + id, "not a map", "application/octet-stream"), 400);
  const std::string small = npy_bytes({2, 2}, std::vector<float>(4));
  EXPECT_THAT(json_of(client.Post("/api/maps?image=" + id, small, "application/octet-stream"), 400)["error"],
              HasSubstr("(32, 32)"));
  const std::string nan = npy_bytes({32, 32}, std::vector<float>(1024, std::nanf("")));
  json_of(client.Post("/api/maps?image=" + id, nan, "application/octet-stream"), 400);
  json_of(client.Post("/api/classify", "{\"image\":", kJsonType), 400);
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"})
    json_of(client.Post("/api/classify", "x", type), 415);
}

TEST(Server, ChecksEveryOptionOfEveryRoute) {
  auto client = results_server().client();
  for (const auto& route : routes()) {
    if (route.options.empty()) continue;
    const std::string path = path_of(route);
    const auto ask = [&](const std::string& query, const Json& body) {
      if (route.body == BodyKind::kNone) return client.Get(path + "?" + query);
      if (route.body == BodyKind::kMap)
        return client.Post(path + "?" + query, "x", "application/octet-stream");
      return client.Post(path, body.dump(), kJsonType);
    };
    EXPECT_THAT(json_of(ask("nonsense=1", {{"nonsense", 1}}), 400)["error"], HasSubstr("nonsense")) << path;
    for (const auto& option : route.options) {
      const bool is_text = option.start.is_string();
      if (route.body != BodyKind::kJson && route.body != BodyKind::kImageOrJson) {
        if (is_text) continue;  // any text is one
        EXPECT_THAT(json_of(ask(option.name + "=x", {}), 400)["error"], HasSubstr(option.name)) << path;
        continue;
      }
      std::vector<Json> wrongs = {Json::object(), nullptr, Json::array({Json::object()})};
      if (is_text)
        wrongs.push_back(3);
      else
        wrongs.push_back("x y");
      if (option.start.is_number()) wrongs.insert(wrongs.end(), {1e300, "1", true});
      for (const Json& wrong : wrongs) {
        if (option.start.is_array() && wrong.is_string()) continue;  // a list as text
        EXPECT_THAT(json_of(ask("", {{option.name, wrong}}), 400)["error"], HasSubstr(option.name))
            << path << " " << option.name << " " << wrong;
      }
    }
  }
}

TEST(Server, BoundsTheBodyOfEveryRoute) {
  const std::string deep = std::string(2000, '[') + std::string(2000, ']');
  for (const auto& route : routes()) {
    const std::string path = path_of(route);
    const auto answer_to = [&](const std::string& headers, const std::string& body) {
      RawClient raw(server().port);
      raw.send(route.method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n" + body);
      raw.end_sending();
      return raw.rest();
    };
    const auto length = [](size_t bytes) { return "Content-Length: " + std::to_string(bytes) + "\r\n"; };
    if (route.body == BodyKind::kNone) {
      EXPECT_THAT(answer_to(length(5), "hello"), HasSubstr("HTTP/1.1 400")) << path;
      continue;
    }
    const std::string type = route.body == BodyKind::kMap
                                 ? "Content-Type: application/octet-stream\r\n"
                                 : std::string("Content-Type: ") + kJsonType + "\r\n";
    EXPECT_THAT(answer_to(type, ""), HasSubstr("HTTP/1.1 411")) << path;
    EXPECT_THAT(answer_to(type + "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
                HasSubstr("HTTP/1.1 411"))
        << path;
    EXPECT_THAT(answer_to("Content-Type: text/plain\r\n" + length(5), "hello"), HasSubstr("HTTP/1.1 415"))
        << path;
    EXPECT_THAT(answer_to(length(5), "hello"), HasSubstr("HTTP/1.1 415")) << path;
    EXPECT_THAT(answer_to(type + length((size_t{1} << 20) + 1), "hello"), HasSubstr("HTTP/1.1 413")) << path;
    EXPECT_THAT(answer_to(type + length(500), "{\"image\":"), ::testing::Not(HasSubstr("HTTP/1.1 2")))
        << path;
    for (const std::string& body :
         {std::string("{\"image\":"), std::string("[]"), std::string("\xff\xfe"), deep})
      EXPECT_THAT(answer_to(type + length(body.size()), body),
                  HasSubstr(route.body == BodyKind::kMap ? "HTTP/1.1 404" : "HTTP/1.1 400"))
          << path << " " << body.substr(0, 20);
  }
  EXPECT_EQ(server().client().Get("/api/models")->status, 200);
}

TEST(Server, BoundsWhatItReads) {
  auto client = server().client();
  json_of(client.Post("/api/images", std::string((1 << 20) + 1, 'x'), "image/png"), 413);
  json_of(client.Post("/api/score", std::string((1 << 20) + 1, ' '), kJsonType), 413);
  const std::string head = "POST /api/images HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\n";
  const std::vector<std::pair<std::string, std::string>> wrongs = {
      {head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "411"},
      {head + "\r\n", "411"},
      {head + "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello", "415"},
      {head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
      {head + "Content-Length: -5\r\n\r\nhello", "400"},
      {head + "Content-Length: 99999999999999999999\r\n\r\nhello", "400"},
      {"GET /api/models HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1,0-1\r\n\r\n", "416"},
      {"GET /api/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "400"},
      {"GET /api/models HTTP/1.1\r\n\r\n", "403"},
      {"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
      {"\r\n\r\n\r\n", ""},
      {std::string(100000, 'x'), ""},
  };
  for (const auto& [text, status] : wrongs) {
    RawClient raw(server().port);
    raw.send(text);
    raw.end_sending();
    const std::string answer = raw.rest();
    EXPECT_THAT(answer, HasSubstr(status.empty() ? "" : "HTTP/1.1 " + status)) << text.substr(0, 200);
  }
  // A body that ends too early.
  RawClient cut(server().port);
  cut.send(head + "Content-Length: 500\r\n\r\nonly this");
  cut.end_sending();
  EXPECT_THAT(cut.rest(), ::testing::Not(HasSubstr("HTTP/1.1 2")));
  EXPECT_EQ(client.Get("/api/models")->status, 200);
}

TEST(Server, ASlowClientHoldsNothingForLong) {
  const auto start = std::chrono::steady_clock::now();
  RawClient silent(server().port), slow(server().port);
  std::thread dripping([&] {
    for (int i = 0; i < 100 && slow.send(i == 0 ? "GET /api/models HTTP/1.1\r\nX: " : "x"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  EXPECT_EQ(server().client().Get("/api/models")->status, 200);
  EXPECT_EQ(slow.rest().find("HTTP/1.1 200"), std::string::npos);
  dripping.join();
  EXPECT_EQ(silent.rest(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST(Server, ABodyThatDripsAndAClientThatDoesNotReadAreLetGo) {
  RawClient slow(server().port), greedy(server().port);
  slow.send(
      "POST /api/images HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\n"
      "Content-Length: 1000\r\n\r\n");
  std::thread dripping([&] {
    for (int i = 0; i < 100 && slow.send("x"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
  // Answers of many megabytes that nobody takes.
  constexpr int kAsked = 200;
  std::string asking;
  for (int i = 0; i < kAsked; ++i) asking += "GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
  greedy.send(asking);
  EXPECT_EQ(slow.rest().find("HTTP/1.1 2"), std::string::npos);
  dripping.join();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_EQ(server().client().Get("/api/models")->status, 200);
  const std::string taken = greedy.rest();
  int answers = 0;
  for (size_t at = 0; (at = taken.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++answers;
  EXPECT_GT(answers, 0);
  EXPECT_LT(answers, kAsked) << "the connection was ended before all was sent";
}

TEST(Server, AJobWhoseClientIsGoneIsCanceled) {
  auto client = server().client();
  const std::string id = post(client, "/api/images", {{"sample", 1}}, 201)["image"];
  const std::string body = Json{{"image", id}, {"method", kLongMethod}}.dump();
  RawClient raw(server().port);
  raw.send(
      "POST /api/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  const auto newest = [&] { return json_of(client.Get("/api/jobs"))["jobs"][0]; };
  while (newest()["state"] != "running") std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::string job = newest()["job"];
  raw.close();
  for (int i = 0; i < 300; ++i) {
    const Json now = json_of(client.Get("/api/jobs/" + job));
    if (now["state"] == "canceled") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  FAIL() << "the job still runs";
}

TEST(Server, AFullQueueAnswers503AndWhenToComeAgain) {
  ServeOptions options = small_options();
  options.limits.queue = 1;
  options.limits.connections = 3;
  Served small(options);
  auto client = small.client();
  const std::string id = post(client, "/api/images", {{"sample", 1}}, 201)["image"];
  const Json longer = {{"image", id}, {"method", kLongMethod}, {"wait", false}};
  const std::string first = post(client, "/api/explain", longer, 202)["job"];
  while (json_of(client.Get("/api/jobs/" + first))["state"] == "queued")
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  post(client, "/api/explain", longer, 202);
  const auto full = client.Post("/api/explain", longer.dump(), kJsonType);
  json_of(full, 503);
  EXPECT_EQ(full->get_header_value("Retry-After"), "1");
  // And so does one connection too many. The refused client's own has to end first.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  RawClient one(small.port), two(small.port), three(small.port);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  RawClient many(small.port);
  many.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(many.rest(), HasSubstr("503 Service Unavailable"));
}  // stops with a job that runs and one that waits

TEST(Server, KnowsItsCallersByHostOriginAndToken) {
  auto client = server().client();
  EXPECT_EQ(client.Get("/api/models", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(client.Get("/api/models", {{"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(client.Get("/api/models", {{"Sec-Fetch-Site", "cross-site"}})->status, 403);
  EXPECT_EQ(client.Get("/", {{"Sec-Fetch-Site", "cross-site"}})->status, 200);  // a link may open the page
  EXPECT_EQ(client.Post("/api/classify", {{"Origin", "null"}}, "{}", kJsonType)->status, 403);
  ServeOptions options = small_options();
  options.token = "a-long-secret";
  options.limits.megapixels = 0.001;  // 1000 pixels
  Served guarded(options);
  auto other = guarded.client();
  EXPECT_EQ(other.Get("/")->status, 401);
  EXPECT_EQ(other.Get("/api/models")->status, 401);
  EXPECT_EQ(other.Get("/?token=wrong")->status, 401);
  EXPECT_EQ(other.Get("/api/models", {{"Authorization", "Bearer a-long-secreT"}})->status, 401);
  EXPECT_EQ(other.Get("/api/models", {{"Authorization", "Bearer a-long-secret"}})->status, 200);
  const auto opened = other.Get("/?token=a-long-secret");
  EXPECT_EQ(opened->status, 302);
  EXPECT_THAT(opened->get_header_value("Set-Cookie"), HasSubstr("HttpOnly; SameSite=Strict"));
  const httplib::Headers cookie = {{"Cookie", "aha_token=a-long-secret"}};
  EXPECT_EQ(other.Get("/api/models", cookie)->status, 200);
  for (const auto& route : routes()) {
    httplib::Request request;
    request.method = route.method;
    request.path = path_of(route);
    EXPECT_EQ(other.send(request)->status, 401) << route.path;
    request.headers = {{"Cookie", "aha_token=a-long-secret"}, {"Origin", "http://evil.example"}};
    EXPECT_EQ(other.send(request)->status, 403) << route.path;
  }
  // An image of too many pixels is refused from its header.
  EXPECT_THAT(json_of(other.Post("/api/images", cookie, png_of(1), "image/png"), 400)["error"],
              HasSubstr("megapixels"));
}

TEST(Server, ManyClientsGetTheAnswersOfOne) {
  constexpr int kClients = 6, kImages = 3;
  std::vector<Json> alone;
  for (int i = 0; i < kImages; ++i) {
    auto client = server().client();
    alone.push_back(
        json_of(client.Post("/api/explain?name=" + std::to_string(i), png_of(10 + i), "image/png")));
  }
  std::atomic<int> same = 0;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c)
    threads.emplace_back([&] {
      auto client = server().client();
      for (int i = 0; i < kImages; ++i) {
        Json found =
            json_of(client.Post("/api/explain?name=" + std::to_string(i), png_of(10 + i), "image/png"));
        Json known = alone[i];
        found.erase("seconds");
        known.erase("seconds");
        same += found == known;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(same, kClients * kImages);
}

}  // namespace
}  // namespace aha
