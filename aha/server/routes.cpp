#include "aha/server/requests.h"
#include "aha/server/serve.h"

namespace aha {
namespace {

template <class Options>
std::vector<Route::Option> options_of() {
  Options options;
  std::vector<Route::Option> out;
  const Fields all = fields(options);
  for (const Field& field : all.list())
    out.push_back({field.name, type_of(field), field.help, json_from_field(field)});
  return out;
}

std::vector<Route> make_routes() {
  return {
      {"GET",
       "/api/models",
       "The classifiers that are loaded, with their classes and explainers.",
       R"({"models":[{"name","architecture","size","classes","class_names","explainer","method","sha256"}],"limits"})",
       "curl -s localhost:8080/api/models",
       BodyKind::kNone,
       {},
       &Api::get_models},
      {"GET", "/api/methods", "The methods that fit a classifier, with their options.",
       R"({"methods":[{"name","summary","paper","quick","options":[{"name","type","default","help"}]}]})",
       "curl -s 'localhost:8080/api/methods?model=cifar10-vit4'", BodyKind::kNone, options_of<ModelOptions>(),
       &Api::get_methods},
      {"GET", "/api/samples", "Images of the data set that the server was started with.",
       R"({"data","size","samples":[{"sample","name","label","url"}]})",
       "curl -s 'localhost:8080/api/samples?limit=3'", BodyKind::kNone, options_of<SamplesOptions>(),
       &Api::get_samples},
      {"GET",
       "/api/samples/{index}.png",
       "A sample as the first classifier sees it.",
       "a PNG image",
       "curl -s -o sample.png localhost:8080/api/samples/0.png",
       BodyKind::kNone,
       {},
       &Api::get_sample},
      {"POST", "/api/images",
       "Brings an image, or one of the samples; other routes name it by its id. The id is a hash of name and "
       "content: the same image has the same id after a restart.",
       R"({"image","name","width","height","sample"})",
       "curl -s -H 'Content-Type: image/png' --data-binary @frog.png "
       "'localhost:8080/api/images?name=frog.png'",
       BodyKind::kImageOrJson, options_of<ImageOptions>(), &Api::post_image},
      {"GET", "/api/images/{id}.png", "The image as a classifier sees it.", "a PNG image",
       "curl -s -o input.png localhost:8080/api/images/$IMAGE.png", BodyKind::kNone,
       options_of<ModelOptions>(), &Api::get_image},
      {"GET", "/api/images/{id}/{reference}.png",
       "What removed pixels become: the reference black, mean or blur of an image.", "a PNG image",
       "curl -s -o blur.png localhost:8080/api/images/$IMAGE/blur.png", BodyKind::kNone,
       options_of<ModelOptions>(), &Api::get_reference},
      {"POST", "/api/classify", "The most probable classes.",
       R"({"image","name","model","classes":[{"index","name","probability"}]})",
       "curl -s -H 'Content-Type: image/png' --data-binary @frog.png 'localhost:8080/api/classify?topk=3'",
       BodyKind::kImageOrJson, options_of<ClassifyRequest>(), &Api::post_classify},
      {"POST", "/api/explain",
       "A map with its score. The keys are those of `aha explain --json`; `map` has an id and where the map "
       "is "
       "to be had as float32 (.npy) and as images.",
       R"({"image","name","model","class","method","map":{"id","npy","heat","overlay","height","width","min","max"},"refine","loss","passes","deletion","insertion","seconds","curves","random","references"})",
       "curl -s -H 'Content-Type: image/png' --data-binary @frog.png "
       "'localhost:8080/api/explain?method=aha&refine=3'",
       BodyKind::kImageOrJson, options_of<ExplainRequest>(), &Api::post_explain},
      {"POST", "/api/maps", "A map made elsewhere (.npy, the size of the classifier's input), to be scored.",
       R"({"image","name","model","class","method":"given","map":{"id",...}})",
       "curl -s -H 'Content-Type: application/octet-stream' --data-binary @frog.map.npy "
       "\"localhost:8080/api/maps?image=$IMAGE\"",
       BodyKind::kMap, options_of<MapRequest>(), &Api::post_map},
      {"GET",
       "/api/maps/{id}.json",
       "What was answered when the map was made.",
       "as of /api/explain",
       "curl -s localhost:8080/api/maps/$MAP.json",
       BodyKind::kNone,
       {},
       &Api::get_map_json},
      {"GET",
       "/api/maps/{id}.npy",
       "The map: float32, (height, width) of the classifier's input.",
       "a file of NumPy, bit for bit the one that `aha explain --out` writes",
       "curl -s -o frog.map.npy localhost:8080/api/maps/$MAP.npy",
       BodyKind::kNone,
       {},
       &Api::get_map_npy},
      {"GET", "/api/maps/{id}.heat.png", "The map as colors.", "a PNG image",
       "curl -s -o heat.png \"localhost:8080/api/maps/$MAP.heat.png?scale=rank\"", BodyKind::kNone,
       options_of<HeatOptions>(), &Api::get_map_heat},
      {"GET", "/api/maps/{id}.overlay.png", "The map over the image.", "a PNG image",
       "curl -s -o overlay.png localhost:8080/api/maps/$MAP.overlay.png", BodyKind::kNone,
       options_of<HeatOptions>(), &Api::get_map_overlay},
      {"POST", "/api/score",
       "What the classifier says when pixels are removed: the k first of a map deleted, or inserted into the "
       "reference, or those that a mask names.",
       R"({"probability","predicted":{"index","name","probability"}})",
       "curl -s -H 'Content-Type: application/json' -d "
       "'{\"map\":\"'$MAP'\",\"k\":300,\"mode\":\"delete\",\"reference\":\"black\"}' "
       "localhost:8080/api/score",
       BodyKind::kJson, options_of<ScoreRequest>(), &Api::post_score},
      {"POST", "/api/curve", "The probability of the map's class over the number of pixels, both directions.",
       R"({"k":[..],"deletion":[..],"insertion":[..]})",
       "curl -s -H 'Content-Type: application/json' -d '{\"map\":\"'$MAP'\",\"steps\":20}' "
       "localhost:8080/api/curve",
       BodyKind::kJson, options_of<CurveRequest>(), &Api::post_curve},
      {"POST", "/api/compare",
       "Several methods on one image. The keys are those of `aha compare --json`; each method has its map.",
       R"({"image","name","model","class","methods":[{"method","refine","loss","passes","deletion","insertion","seconds","map","curves"}],"references"})",
       "curl -s -H 'Content-Type: image/png' --data-binary @frog.png "
       "'localhost:8080/api/compare?methods=aha,gradient'",
       BodyKind::kImageOrJson, options_of<CompareRequest>(), &Api::post_compare},
      {"GET",
       "/api/jobs",
       "The jobs that wait, run or ended lately, newest first.",
       R"({"jobs":[{"job","what","state","seconds","progress","error"}]})",
       "curl -s localhost:8080/api/jobs",
       BodyKind::kNone,
       {},
       &Api::get_jobs},
      {"GET",
       "/api/jobs/{id}",
       "One job, with its result when it is done.",
       R"({"job","what","state":"queued|running|done|failed|canceled","seconds","progress":{"what","note","done","total"},"error","result"})",
       "curl -s localhost:8080/api/jobs/j1",
       BodyKind::kNone,
       {},
       &Api::get_job},
      {"GET",
       "/api/jobs/{id}/events",
       "The same as server-sent events, one for each change until it has ended.",
       "`event: progress` and at last `event: end`, each with `data:` as of /api/jobs/{id}",
       "curl -sN localhost:8080/api/jobs/j1/events",
       BodyKind::kNone,
       {},
       &Api::get_events},
      {"DELETE",
       "/api/jobs/{id}",
       "Cancels a job.",
       "as of /api/jobs/{id}",
       "curl -s -X DELETE localhost:8080/api/jobs/j1",
       BodyKind::kNone,
       {},
       &Api::delete_job},
      {"GET",
       "/api/results",
       "The table and curves of the evaluation folder that the server was started with.",
       "`results.json` of `aha eval`; 404 where there is none",
       "curl -s localhost:8080/api/results",
       BodyKind::kNone,
       {},
       &Api::get_results},
      {"GET", "/api/results/images", "What each method got on each image, worst or best first.",
       R"({"total","metric","images":[{"image","sample","figures":[{"method","class","figures","map"}]}]})",
       "curl -s 'localhost:8080/api/results/images?method=aha&metric=ins-del&limit=5'", BodyKind::kNone,
       options_of<ResultsRequest>(), &Api::get_results_images},
      {"GET",
       "/api/results/maps/{index}.png",
       "A map that the evaluation kept, over its image where that is at hand. `map` of /api/results/images "
       "names it.",
       "a PNG image; 404 where none was kept",
       "curl -s -o map.png localhost:8080/api/results/maps/0.png",
       BodyKind::kNone,
       {},
       &Api::get_results_map},
  };
}

const char* text_of(BodyKind body) {
  switch (body) {
    case BodyKind::kJson:
      return "Options: a JSON object.";
    case BodyKind::kImageOrJson:
      return "Body: an image (`Content-Type: image/...`), options in the query; or a JSON object of options "
             "that "
             "names the image.";
    case BodyKind::kMap:
      return "Body: a .npy file (`Content-Type: application/octet-stream`), options in the query.";
    default:
      return "Options: in the query.";
  }
}

std::string in_table(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

}  // namespace

const std::vector<Route>& routes() {
  static const std::vector<Route> all = make_routes();
  return all;
}

std::string api_markdown() {
  std::string out =
      "# The HTTP API\n\n"
      "This page is written by `make docs` from the routes of `aha/server`.\n\n"
      "`aha serve` answers on `http://localhost:8080` unless told otherwise. Names are those of the command\n"
      "line and of the C++ interface. An error is `{\"error\":\"...\"}` with status 400 (wrong input), 401 "
      "(no\n"
      "token), 403 (another host or web site), 404 (no such image, map or job; images and maps that nobody\n"
      "used for long are forgotten), 405, 411, 413, 414, 415, 416, 500, 503 with `Retry-After` (too many "
      "jobs\n"
      "wait) or 504 (the job took too long). A request names no file of the server: classifiers, explainers\n"
      "and data are those it was started with.\n\n"
      "Everything that computes is a job. Routes that compute answer when it is done; with `wait=false` "
      "they\n"
      "answer 202 with the job's id at once. A job is canceled when its caller goes away, or by DELETE.\n\n"
      "With `--token` every request carries `Authorization: Bearer TOKEN`; a browser opens `/?token=TOKEN` "
      "once.\n"
      "\n| route | what it does |\n| --- | --- |\n";
  for (const auto& route : routes())
    out += fmt::format("| `{} {}` | {} |\n", route.method, route.path, route.summary);
  for (const auto& route : routes()) {
    out += fmt::format("\n## `{} {}`\n\n{}\n", route.method, route.path, route.summary);
    if (!route.options.empty()) {
      out += fmt::format("\n{}\n\n| option | default | values | meaning |\n| --- | --- | --- | --- |\n",
                         text_of(route.body));
      for (const auto& option : route.options)
        out += fmt::format("| `{}` | `{}` | {} | {} |\n", option.name,
                           option.start.is_string() ? option.start.get<std::string>() : option.start.dump(),
                           in_table(option.type), in_table(option.help));
    }
    out +=
        fmt::format("\nAnswer: {}\n\n```sh\n{}\n```\n",
                    route.answer.starts_with('{') ? "`" + route.answer + "`" : route.answer, route.example);
  }
  return out;
}

}  // namespace aha
