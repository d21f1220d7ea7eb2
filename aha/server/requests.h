// The options of each route: what a client may set, with names, ranges and help (base/options.h).
#pragma once

#include "aha/server/api.h"

namespace aha {

struct ModelOptions {
  std::string model;
};
inline Fields fields(ModelOptions& o) {
  return Fields().add("model", o.model, "a classifier of /api/models; empty = the first");
}

struct SamplesOptions {
  int first = 0, limit = 24;
};
inline Fields fields(SamplesOptions& o) {
  return Fields()
      .add("first", o.first, "where to begin")
      .range(0, 1e9)
      .add("limit", o.limit, "how many at most")
      .range(1, 200);
}

struct ImageOptions {
  std::string name = "image";
  int sample = -1;
};
inline Fields fields(ImageOptions& o) {
  return Fields()
      .add("name", o.name, "what the image is called")
      .add("sample", o.sample, "a sample instead of a body; -1 = none")
      .range(-1, 1e9);
}

// What most routes share. `image` is an id; a body that is an image stands for it.
struct WorkOptions {
  std::string model, image, name = "image";
  bool wait = true;
};
inline Fields fields(WorkOptions& o) {
  return Fields()
      .add("model", o.model, "a classifier of /api/models; empty = the first")
      .add("image", o.image, "id of an image of /api/images")
      .add("name", o.name, "what an image that comes as the body is called")
      .add("wait", o.wait, "answer when it is done; false = 202 and the id of the job at once");
}

struct ClassifyRequest {
  WorkOptions work;
  int topk = 5;
};
inline Fields fields(ClassifyRequest& o) {
  return Fields().nest("", fields(o.work)).add("topk", o.topk, "how many classes").range(1, 1000);
}

struct ExplainRequest {
  WorkOptions work;
  std::string wanted = "predicted", method;
  int refine = 0;
  bool score = true;
};
inline Fields fields(ExplainRequest& o) {
  return Fields()
      .nest("", fields(o.work))
      .add("class", o.wanted, "the class to explain: predicted, an index or a name")
      .add("method", o.method,
           "a method of /api/methods, NAME:key=value:key=value; empty = aha where there is an explainer")
      .add("refine", o.refine, "steps on this image before the map is taken (method aha)")
      .range(0, 100)
      .add("score", o.score, "deletion and insertion of the map, and of a random one");
}

struct MapRequest {
  WorkOptions work;
  std::string wanted = "predicted";
};
inline Fields fields(MapRequest& o) {
  return Fields()
      .nest("", fields(o.work))
      .add("class", o.wanted, "the class that the map explains: predicted, an index or a name");
}

struct ScoreRequest {
  std::string map, image, model, mode = "delete", reference = "black";
  int class_index = -1, k = 0;
  std::vector<int> keep;
};
inline Fields fields(ScoreRequest& o) {
  return Fields()
      .add("map", o.map, "id of a map; its image, classifier and class are meant")
      .add("k", o.k, "how many of the map's most important pixels")
      .range(0, 1e9)
      .add("mode", o.mode, "delete them, or insert them alone into the reference")
      .choices({"delete", "insert"})
      .add("reference", o.reference, "what removed pixels become")
      .choices({"black", "mean", "blur"})
      .add("keep", o.keep,
           "instead of a map's order: lengths of runs of pixels, visible and hidden in turn, row by row")
      .add("image", o.image, "without a map: id of the image")
      .add("model", o.model, "without a map: the classifier")
      .add("class", o.class_index, "index of the class; -1 = the map's")
      .range(-1, 1e9);
}

struct CurveRequest {
  std::string map, reference = "black";
  int steps = 10;
};
inline Fields fields(CurveRequest& o) {
  return Fields()
      .add("map", o.map, "id of a map")
      .add("reference", o.reference, "what removed pixels become")
      .choices({"black", "mean", "blur"})
      .add("steps", o.steps, "equal shares of the pixels")
      .range(2, 100);
}

struct CompareRequest {
  WorkOptions work;
  std::string wanted = "predicted";
  std::vector<std::string> methods;
};
inline Fields fields(CompareRequest& o) {
  return Fields()
      .nest("", fields(o.work))
      .add("class", o.wanted, "the class to explain: predicted, an index or a name")
      .add("methods", o.methods, "at most 16 methods; none = those of a few passes and a control");
}

struct ResultsRequest {
  std::string method, metric = "ins-del", explained = "predicted", order = "worst";
  int first = 0, limit = 50;
};
inline Fields fields(ResultsRequest& o) {
  return Fields()
      .add("method", o.method, "images are sorted by this method's figure; empty = in the order of the table")
      .add("metric", o.metric, "the figure")
      .add("class", o.explained, "the class explained")
      .choices({"predicted", "truth"})
      .add("order", o.order, "the worst or the best figure first")
      .choices({"worst", "best"})
      .add("first", o.first, "where to begin")
      .range(0, 1e9)
      .add("limit", o.limit, "how many at most")
      .range(1, 500);
}

}  // namespace aha
