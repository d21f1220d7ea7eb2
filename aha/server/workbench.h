// What stays in memory between requests: loaded classifiers with their explainers, images as each of them
// sees them, maps. Images and maps are kept as long as there is room; both are named by the hash of what they
// are made from, so that an address that holds them means the same after a restart.
//
// Every function here that takes a Context runs on a job's thread (jobs.h); the others only look things up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aha/app/compare.h"
#include "aha/app/explain.h"
#include "aha/data/dataset.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/server/limits.h"
#include "aha/server/lru.h"

namespace aha {

struct WarmModel {
  std::string name;  // without folders
  std::unique_ptr<Classifier> target;
  std::unique_ptr<Classifier> copy;  // in bf16, where that is faster: asked for scores and curves
  std::optional<LoadedExplainer> explainer;
  std::vector<std::string> methods;  // that fit and need no file
  std::vector<std::string> quick;    // of them, those of a few passes

  Classifier& asked() { return copy ? *copy : *target; }
  MethodContext by() { return {*target, explainer ? &*explainer : nullptr}; }
};

// As each model sees it.
struct WarmImage {
  std::string id, name;
  int width = 0, height = 0;   // of the file
  std::vector<Tensor> inputs;  // for each model (1, 3, size, size)
};

struct WarmMap {
  std::string id, image, model, method;
  Tensor map;  // (H, W)
  ChosenClass chosen;
  nlohmann::ordered_json json;  // what explain answers
};

class Workbench {
 public:
  Workbench(std::vector<WarmModel> models, std::unique_ptr<Dataset> samples, const ServerLimits& limits);

  std::vector<WarmModel>& models() { return models_; }
  // Empty name = the first. Input error that lists them.
  size_t model_index(const std::string& name) const;
  const Dataset* samples() const { return samples_.get(); }

  static std::string image_id(std::string_view bytes, const std::string& name);
  std::optional<WarmImage> image(const std::string& id) { return images_.find(id); }
  std::optional<WarmMap> map(const std::string& id) { return maps_.find(id); }

  WarmImage add_image(const std::string& id, const std::string& name, std::string_view bytes);
  WarmImage add_sample(int64_t index);
  WarmMap add_map(std::string_view npy, const WarmImage& image, size_t model, const std::string& wanted,
                  const Context& context);

  // From the options alone, before the work: a map that is there already need not be made.
  static std::string map_id(const WarmImage& image, const std::string& model, const ExplainOptions& options);
  WarmMap explain(const WarmImage& image, size_t model, const ExplainOptions& options,
                  const Context& context);
  // Methods in the order asked for; each map is kept.
  nlohmann::ordered_json compare(const WarmImage& image, size_t model,
                                 const std::vector<std::string>& methods, const std::string& wanted,
                                 const Context& context);

  int64_t cached_bytes() const { return images_.bytes() + maps_.bytes(); }

 private:
  WarmImage keep(std::string id, std::string name, const Image& image);
  WarmMap keep(WarmMap map);

  std::vector<WarmModel> models_;
  std::unique_ptr<Dataset> samples_;
  const ServerLimits limits_;
  Lru<WarmImage> images_;
  Lru<WarmMap> maps_;
};

// A method that a client may name: one of the catalog that reads no file.
void check_method(const std::string& spec);
// Whether its maps take a few passes: such a job is a short one.
bool is_quick(const WarmModel& model, const std::string& method, int refine);

// Loads each target, and its explainer: `explainer` for the first, else the bundled one.
std::vector<WarmModel> load_models(const std::vector<std::string>& targets, const std::string& explainer,
                                   const std::string& encoder, const Context& context);

}  // namespace aha
