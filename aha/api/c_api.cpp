// The functions of aha_c.h: handles around what the other doors use too.
#include <aha/aha_c.h>

#include "aha/tensor/torch.h"

#include <cmath>
#include <map>

#include "aha/api/callable_target.h"
#include "aha/api/session.h"
#include "aha/app/explain.h"
#include "aha/app/records.h"
#include "aha/base/error.h"
#include "aha/base/progress_listener.h"
#include "aha/base/stats.h"
#include "aha/evaluate/given_maps.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/image/heatmap.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/methods/catalog.h"
#include "aha/methods/fitting.h"
#include "aha/metrics/catalog.h"
#include "aha/metrics/score_queue.h"
#include "aha/networks/bf16_copy.h"
#include "aha/networks/catalog.h"
#include "aha/networks/seen_part.h"
#include "aha/tensor/tensor.h"
#include "aha/train/explainer_trainer.h"

struct aha_session {
  explicit aha_session(const aha::SessionOptions& options) : session(options) {}
  aha::Session session;
};

struct aha_model {
  aha::Session* session = nullptr;
  std::string spec;       // empty = a callable
  bool gradients = true;  // false: a callable without a function for them
  aha::LoadOptions load;
  std::unique_ptr<aha::Classifier> target;
  std::map<std::pair<std::string, std::string>, std::optional<aha::LoadedExplainer>> explainers;
  std::optional<std::unique_ptr<aha::Classifier>> score_copy;  // null inside = the target itself is asked
  std::string methods;
};

struct aha_image {
  std::string name = "image";
  aha::Image photo;
  aha::Tensor pixels;  // (3, H, W); undefined = the photo
};

struct aha_explanation {
  std::vector<aha::Explanation> images;
  aha::Tensor maps;  // (n, H, W), of which theirs are slices
};

struct aha_evaluation {
  aha::Summary summary;
  double ci = 0;
  uint64_t seed = 0;
  size_t methods = 0;
  std::vector<std::vector<std::vector<double>>> values;  // metric, method, image
  std::string remarks;
};

struct aha_picture {
  aha::Image image;
  std::string png;
};

namespace aha {
namespace {

thread_local std::string t_last_error;

// libtorch's messages carry a stack trace behind the first line.
std::string first_line(const std::exception& error) {
  std::string message = error.what();
  if (message.find("can't allocate memory") != std::string::npos) return "out of memory";
  message.erase(std::min(message.find('\n'), message.size()));
  return message;
}

aha_kind failed(aha_kind kind, std::string message) {
  t_last_error = std::move(message);
  return kind;
}

// Nothing is thrown through C.
template <class Work>
aha_kind guarded(const Work& work) {
  try {
    work();
    return AHA_OK;
  } catch (const Error& error) {
    return failed(error.kind() == ErrorKind::kInput      ? AHA_INPUT
                  : error.kind() == ErrorKind::kCanceled ? AHA_CANCELED
                                                         : AHA_FAILED,
                  error.what());
  } catch (const std::bad_alloc&) {
    return failed(AHA_FAILED, "out of memory");
  } catch (const std::exception& error) {
    return failed(AHA_FAILED, first_line(error));
  } catch (...) {
    return failed(AHA_FAILED, "failed");
  }
}

template <class T>
T& given(T* handle, const char* what) {
  if (!handle) throw input_error("{}: expected a handle, found null", what);
  return *handle;
}

template <class T>
void hand_out(std::unique_ptr<T> made, T** to, const char* what) {
  T*& place = given(to, what);
  place = made.release();
}

void set_options(const Fields& known, aha_options options) {
  for (size_t i = 0; options && options[i]; i += 2) {
    if (!options[i + 1]) throw input_error("option {}: expected a value behind it, found none", options[i]);
    const Field* field = known.find(options[i]);
    if (!field) throw unknown_name_error("option", options[i], known.names());
    set_from_text(*field, options[i + 1], options[i]);
  }
}

void check_image_size(int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > 65535 || width > 65535)
    throw input_error("image: expected 1..65535 pixels on each side, found {} x {}", width, height);
}

// (3, size, size)
Tensor input_of(const aha_image& image, const InputSpec& spec) {
  if (!image.pixels.defined()) return input_from_image(image.photo, spec);
  if (image.pixels.size(1) != spec.size || image.pixels.size(2) != spec.size)
    throw input_error(
        "{}: expected float pixels of shape (3, {}, {}), as the model gets them, found (3, {}, {}); 8-bit "
        "images of any size are resized",
        image.name, spec.size, spec.size, image.pixels.size(1), image.pixels.size(2));
  return image.pixels;
}

struct Inputs {
  Tensor pixels;  // (N, 3, size, size)
  std::vector<std::string> names;
};

Inputs inputs_of(const aha_image* const* images, size_t first, size_t n, const InputSpec& spec,
                 const Context& context) {
  Inputs out;
  std::vector<Tensor> rows;
  for (size_t i = first; i < first + n; ++i) {
    const aha_image& image = given(images[i], "image");
    rows.push_back(input_of(image, spec));
    out.names.push_back(image.name);
  }
  out.pixels = torch::stack(rows).to(torch_device(context));
  return out;
}

void check_images(const aha_image* const* images, size_t n) {
  if (!images || n == 0) throw input_error("images: expected one or more, found none");
}

void check_classes(const int64_t* classes, size_t n, const ClassifierInfo& info) {
  for (size_t i = 0; classes && i < n; ++i)
    if (classes[i] < 0 || classes[i] >= info.classes)
      throw input_error("class of image {}: expected 0..{}, found {}", i, info.classes - 1, classes[i]);
}

struct ExplainCall {
  std::string explainer, encoder;
  ExplainOptions explain;
};

// What has a meaning where nothing is written.
Fields fields(ExplainCall& c) {
  return Fields()
      .add("explainer", c.explainer, "a trained explainer: a bundled one or its directory")
      .add("encoder", c.encoder, "weights of the explainer's own encoder")
      .add("method", c.explain.method, "NAME:key=value:key=value")
      .add("refine", c.explain.refine, "steps on each image before its map is taken (method aha)")
      .range(0, 100000)
      .add("budget", c.explain.budget, "refine as far as this time allows for each image: 200ms, 1.5s")
      .add("class", c.explain.wanted, "the class to explain: predicted, an index or a name")
      .add("score", c.explain.score, "deletion and insertion of the map, and of a random one");
}

LoadedExplainer* explainer_of(aha_model& model, const ExplainCall& call, const Context& context) {
  const auto key = std::pair(call.explainer, call.encoder);
  auto known = model.explainers.find(key);
  if (known == model.explainers.end())
    known = model.explainers.emplace(key, explainer_for(call.explainer, *model.target, context, call.encoder))
                .first;
  return known->second ? &*known->second : nullptr;
}

MethodContext explained_by(aha_model& model, const ExplainCall& call, const Context& context) {
  // A callable has no file that an explainer could belong to.
  const bool wants_explainer = !model.spec.empty() || !call.explainer.empty();
  return {*model.target, wants_explainer ? explainer_of(model, call, context) : nullptr};
}

bool needs_gradient(const std::string& method) {
  return method_record(method).needs.starts_with("gradient");
}

constexpr size_t kExplainBatch = 8;

std::vector<Explanation> explained(aha_model& model, const aha_image* const* images, size_t n,
                                   const int64_t* classes, const ExplainCall& call, const Context& context) {
  const auto& info = model.target->info();
  const MethodContext by = explained_by(model, call, context);
  const auto method = method_of(call.explain, by);
  std::optional<Scorer> scorer;
  if (call.explain.score) {
    if (!model.score_copy) model.score_copy = bf16_copy(*model.target, context);
    scorer.emplace(*model.target, model.score_copy->get(), context);
  }
  const size_t batch = method->timed()          ? 1
                       : context.batch_size > 0 ? static_cast<size_t>(context.batch_size)
                                                : kExplainBatch;
  std::vector<Explanation> out;
  for (size_t first = 0; first < n; first += batch) {
    context.cancel->check();
    const size_t count = std::min(batch, n - first);
    const Inputs inputs = inputs_of(images, first, count, info.input, context);
    ExplainOptions options = call.explain;
    if (classes) options.classes.assign(classes + first, classes + first + count);
    for (auto& one : explain_pixels(by, *method, inputs.pixels, inputs.names, options, context,
                                    scorer ? &*scorer : nullptr))
      out.push_back(std::move(one));
  }
  return out;
}

// The maps as one array, of which each image's is a slice then. What a method made for a whole batch is one
// already.
Tensor one_array(std::vector<Explanation>& images) {
  const Tensor& first = images[0].scored.map;
  const int64_t n = std::ssize(images), H = first.size(0), W = first.size(1);
  bool adjacent = true;
  for (int64_t i = 0; i < n; ++i) {
    const Tensor& map = images[static_cast<size_t>(i)].scored.map;
    adjacent = adjacent && map.is_contiguous() && map.is_alias_of(first) &&
               map.data_ptr<float>() == first.data_ptr<float>() + i * H * W;
  }
  if (adjacent) return first.as_strided({n, H, W}, {H * W, W, 1}, first.storage_offset());
  Tensor all = torch::empty({n, H, W});
  for (int64_t i = 0; i < n; ++i) {
    Tensor& map = images[static_cast<size_t>(i)].scored.map;
    all[i].copy_(map);
    map = all[i];
  }
  return all;
}

// Values of each image in the order they were given, NaN for those left out.
std::vector<double> in_given_order(const MetricSummary& metric, const Summary& summary) {
  std::vector<double> out(static_cast<size_t>(summary.asked), std::nan(""));
  for (size_t i = 0; i < metric.per_image.size() && i < summary.images.size(); ++i)
    out[std::stoul(summary.images[i])] = metric.per_image[i];
  return out;
}

double score_or_nan(const Scores& scores, const char* name) {
  const auto found = scores.find(name);
  return found == scores.end() ? std::nan("") : found->second;
}

}  // namespace
}  // namespace aha

using namespace aha;  // NOLINT

extern "C" {

const char* aha_version(void) {
  return AHA_VERSION_TEXT;
}

const char* aha_last_error(void) {
  return t_last_error.c_str();
}

aha_kind aha_records(const char* what, const char** json) {
  return guarded([&] {
    const std::string wanted = &given(what, "what");
    if (wanted != "methods" && wanted != "metrics")
      throw unknown_name_error("kind of records", wanted, std::vector<std::string>{"methods", "metrics"});
    const auto text_of = [](const auto& records) {
      nlohmann::json all = nlohmann::json::array();
      for (const auto& record : records) all.push_back(json_from(record));
      return all.dump();
    };
    static const std::string methods = text_of(method_catalog()), metrics = text_of(metric_catalog());
    given(json, "json") = (wanted == "methods" ? methods : metrics).c_str();
  });
}

aha_kind aha_open(aha_options options, aha_session** session) {
  return guarded([&] {
    SessionOptions wanted;
    set_options(fields(wanted), options);
    hand_out(std::make_unique<aha_session>(wanted), session, "session");
  });
}

void aha_close(aha_session* session) {
  delete session;
}

void aha_cancel(aha_session* session) {
  if (session) session->session.cancel();
}

void aha_poll(aha_session* session, int (*poll)(void* user), void* user) {
  if (!session) return;
  session->session.set_poll(poll ? [=] { return poll(user) != 0; } : std::function<bool()>());
}

aha_kind aha_load(aha_session* session, const char* spec, aha_options options, aha_model** model) {
  return guarded([&] {
    Session& runs = given(session, "session").session;
    auto made = std::make_unique<aha_model>();
    made->session = &runs;
    made->spec = &given(spec, "model");
    int input_size = 0;
    std::vector<double> mean, std;
    set_options(Fields()
                    .add("input-size", input_size, "side of the input in pixels; 0 = the model's own")
                    .range(0, 4096)
                    .add("mean", mean, "R,G,B subtracted from [0, 1] pixels")
                    .add("std", std, "R,G,B that the difference is divided by")
                    .range(1e-6, 1e6),
                options);
    if (input_size > 0) made->load.input_size = input_size;
    made->load.mean = rgb_from_flag(mean, "mean");
    made->load.std = rgb_from_flag(std, "std");
    if (made->spec.empty())
      throw input_error(
          "model: expected a bundled model, a model directory, ARCH:FILE, onnx:FILE.onnx or script:FILE.pt, "
          "found nothing");
    runs.run(
        [&](const Context& context) { made->target = load_classifier(made->spec, made->load, context); });
    hand_out(std::move(made), model, "model");
  });
}

aha_kind aha_wrap(aha_session* session, const aha_callable* callable, aha_model** model) {
  return guarded([&] {
    Session& runs = given(session, "session").session;
    const aha_callable c = given(callable, "callable");
    Callable functions;
    if (c.name && *c.name) functions.name = c.name;
    functions.classes = c.classes;
    functions.size = c.size;
    const std::string name = functions.name;
    if (c.forward)
      functions.forward = [c, name](const float* pixels, int64_t n, float* logits) {
        if (c.forward(c.user, pixels, n, logits) != 0) throw work_error("{}: its function failed", name);
      };
    if (c.gradient)
      functions.gradient = [c, name](const float* pixels, const float* weights, int64_t n, float* gradient) {
        if (c.gradient(c.user, pixels, weights, n, gradient) != 0)
          throw work_error("{}: its gradient function failed", name);
      };
    auto made = std::make_unique<aha_model>();
    made->session = &runs;
    made->gradients = c.gradient != nullptr;
    made->target = classifier_from_callable(std::move(functions));
    hand_out(std::move(made), model, "model");
  });
}

void aha_model_free(aha_model* model) {
  if (!model) return;
  // Tensors die where they were made.
  const auto freed = guarded([&] { model->session->run([&](const Context&) { delete model; }); });
  static_cast<void>(freed);
}

const char* aha_model_name(const aha_model* model) {
  return model ? model->target->info().name.c_str() : "";
}

const char* aha_model_architecture(const aha_model* model) {
  return model ? model->target->info().architecture.c_str() : "";
}

int64_t aha_model_classes(const aha_model* model) {
  return model ? model->target->info().classes : 0;
}

int64_t aha_model_size(const aha_model* model) {
  return model ? model->target->info().input.size : 0;
}

const char* aha_model_class_name(const aha_model* model, int64_t index) {
  if (!model) return nullptr;
  const auto& info = model->target->info();
  if (index < 0 || index >= info.classes) return nullptr;
  return index < std::ssize(info.class_names) ? info.class_names[static_cast<size_t>(index)].c_str() : "";
}

aha_kind aha_model_methods(aha_model* model, const char** names) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    m.session->run([&](const Context& context) {
      LoadedExplainer* explainer = m.spec.empty() ? nullptr : explainer_of(m, {}, context);
      auto names = fitting_methods({*m.target, explainer});
      std::erase_if(names, [&](const std::string& name) { return !m.gradients && needs_gradient(name); });
      m.methods = fmt::format("{}", fmt::join(names, "\n"));
    });
    given(names, "names") = m.methods.c_str();
  });
}

aha_kind aha_model_check(aha_model* model, aha_options options) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    ExplainCall call;
    set_options(fields(call), options);
    m.session->run([&](const Context& context) {
      const auto& info = m.target->info();
      if (call.explain.wanted != "predicted") class_from_text(call.explain.wanted, info);
      method_of(call.explain, explained_by(m, call, context));
      if (!m.gradients && needs_gradient(call.explain.method))
        throw input_error(
            "method {} needs gradients, and {} came without a function for them; methods that need none: "
            "rise, "
            "occlusion, center, random",
            call.explain.method, info.name);
    });
  });
}

aha_kind aha_classify(aha_model* model, const aha_image* const* images, size_t n, float* pixels,
                      float* logits) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    check_images(images, n);
    m.session->run([&](const Context& context) {
      const auto& info = m.target->info();
      const Inputs inputs = inputs_of(images, 0, n, info.input, context);
      const auto copy = [](const Tensor& from, float* to) {
        const Tensor values = from.to(torch::kCPU, torch::kFloat32).contiguous();
        if (to) std::copy_n(values.data_ptr<float>(), values.numel(), to);
      };
      copy(inputs.pixels, pixels);
      if (logits) copy(logits_of(*m.target, inputs.pixels, context), logits);
    });
  });
}

aha_kind aha_image_read(const char* path, aha_image** image) {
  return guarded([&] {
    auto made = std::make_unique<aha_image>();
    made->name = &given(path, "path");
    run_apart([&] { made->photo = read_image(made->name); });
    hand_out(std::move(made), image, "image");
  });
}

aha_kind aha_image_from_u8(const uint8_t* first, int64_t height, int64_t width, ptrdiff_t row,
                           ptrdiff_t column, ptrdiff_t channel, aha_image** image) {
  return guarded([&] {
    given(first, "pixels");
    check_image_size(height, width);
    auto made = std::make_unique<aha_image>();
    made->photo = Image(static_cast<int>(width), static_cast<int>(height));
    for (int64_t y = 0; y < height; ++y) {
      uint8_t* to = made->photo.row(static_cast<int>(y));
      for (int64_t x = 0; x < width; ++x)
        for (int64_t c = 0; c < 3; ++c) *to++ = first[y * row + x * column + c * channel];
    }
    hand_out(std::move(made), image, "image");
  });
}

aha_kind aha_image_from_f32(const float* first, int64_t height, int64_t width, ptrdiff_t row,
                            ptrdiff_t column, ptrdiff_t channel, aha_image** image) {
  return guarded([&] {
    given(first, "pixels");
    check_image_size(height, width);
    auto made = std::make_unique<aha_image>();
    run_apart([&] {
      made->pixels = torch::empty({3, height, width});
      float* to = made->pixels.data_ptr<float>();
      const auto* bytes = reinterpret_cast<const char*>(first);
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t y = 0; y < height; ++y)
          for (int64_t x = 0; x < width; ++x) {
            const float value = *reinterpret_cast<const float*>(bytes + y * row + x * column + c * channel);
            if (!(value >= 0 && value <= 1))
              throw input_error("pixels: expected values in 0..1, found {} in row {}, column {}, channel {}",
                                value, y, x, c);
            *to++ = value;
          }
    });
    hand_out(std::move(made), image, "image");
  });
}

aha_kind aha_image_rename(aha_image* image, const char* name) {
  return guarded([&] { given(image, "image").name = &given(name, "name"); });
}

void aha_image_free(aha_image* image) {
  delete image;
}

aha_kind aha_explain(aha_model* model, const aha_image* const* images, size_t n, const int64_t* classes,
                     aha_options options, aha_explanation** explanation) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    check_images(images, n);
    check_classes(classes, n, m.target->info());
    ExplainCall call;
    set_options(fields(call), options);
    auto made = std::make_unique<aha_explanation>();
    m.session->run([&](const Context& context) {
      made->images = explained(m, images, n, classes, call, context);
      made->maps = one_array(made->images);
    });
    hand_out(std::move(made), explanation, "explanation");
  });
}

aha_kind aha_explanation_get(const aha_explanation* explanation, size_t image, aha_explained* one) {
  return guarded([&] {
    const auto& all = given(explanation, "explanation").images;
    if (image >= all.size()) throw input_error("image: expected 0..{}, found {}", all.size() - 1, image);
    const Explanation& e = all[image];
    const double nan = std::nan("");
    given(one, "one") = {e.scored.map.data_ptr<float>(),
                         e.scored.map.size(0),
                         e.scored.map.size(1),
                         e.chosen.index,
                         e.chosen.name.c_str(),
                         e.chosen.probability,
                         e.scored.score ? e.scored.score->deletion : nan,
                         e.scored.score ? e.scored.score->insertion : nan,
                         e.random ? e.random->deletion : nan,
                         e.random ? e.random->insertion : nan,
                         e.scored.made.steps,
                         e.scored.made.loss,
                         e.scored.made.passes.forwards,
                         e.scored.made.passes.backwards,
                         e.scored.seconds};
  });
}

aha_kind aha_explanation_maps(const aha_explanation* explanation, const float** maps, int64_t* images,
                              int64_t* height, int64_t* width) {
  return guarded([&] {
    const Tensor& all = given(explanation, "explanation").maps;
    given(maps, "maps") = all.data_ptr<float>();
    given(images, "images") = all.size(0);
    given(height, "height") = all.size(1);
    given(width, "width") = all.size(2);
  });
}

void aha_explanation_free(aha_explanation* explanation) {
  delete explanation;
}

aha_kind aha_evaluate(aha_model* model, const aha_image* const* images, size_t n, const int64_t* classes,
                      const char* const* names, const float* const* maps, size_t methods, int64_t height,
                      int64_t width, aha_options options, aha_evaluation** evaluation) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    check_images(images, n);
    const auto& info = m.target->info();
    check_classes(classes, n, info);
    GivenMapsOptions wanted;
    set_options(fields(wanted), options);
    if (height < 1 || width < 1)
      throw input_error("maps: expected a size of 1 x 1 or more, found {} x {}", width, height);
    std::vector<GivenMaps> all;
    for (size_t i = 0; i < methods; ++i)
      all.push_back({&given(names[i], "name"), torch::from_blob(const_cast<float*>(&given(maps[i], "maps")),
                                                                {static_cast<int64_t>(n), height, width})});
    auto made = std::make_unique<aha_evaluation>();
    m.session->run([&](const Context& context) {
      const Inputs inputs = inputs_of(images, 0, n, info.input, context);
      const Tensor explained_classes =
          classes ? torch::from_blob(const_cast<int64_t*>(classes), {static_cast<int64_t>(n)}, torch::kInt64)
                  : logits_of(*m.target, inputs.pixels, context).argmax(1);
      made->summary = evaluate_given_maps(*m.target, inputs.pixels, explained_classes, inputs.names, all,
                                          wanted, context);
      made->seed = context.seed;
      made->ci = wanted.ci;
    });
    const Summary& s = made->summary;
    made->methods = methods;
    for (const auto& metric : s.metrics) {
      auto& of_metric = made->values.emplace_back();
      for (const auto& row : s.rows) of_metric.push_back(in_given_order(row.metrics.at(metric.name), s));
    }
    std::vector<std::string> remarks;
    for (const auto& failure : s.failures) remarks.push_back(text_from_failure(failure));
    for (const auto& warning : s.warnings) remarks.push_back(warning);
    made->remarks = fmt::format("{}", fmt::join(remarks, "\n"));
    hand_out(std::move(made), evaluation, "evaluation");
  });
}

size_t aha_evaluation_metrics(const aha_evaluation* evaluation) {
  return evaluation ? evaluation->summary.metrics.size() : 0;
}

const char* aha_evaluation_metric(const aha_evaluation* evaluation, size_t metric) {
  return metric < aha_evaluation_metrics(evaluation) ? evaluation->summary.metrics[metric].name.c_str()
                                                     : nullptr;
}

int aha_evaluation_higher_is_better(const aha_evaluation* evaluation, size_t metric) {
  return metric < aha_evaluation_metrics(evaluation) && evaluation->summary.metrics[metric].higher_is_better;
}

static const MetricSummary& found_metric(const aha_evaluation* evaluation, size_t metric, size_t method) {
  const aha_evaluation& e = given(evaluation, "evaluation");
  if (metric >= e.values.size() || method >= e.methods)
    throw input_error("evaluation: expected a metric below {} and a method below {}, found {} and {}",
                      e.values.size(), e.methods, metric, method);
  return e.summary.rows[method].metrics.at(e.summary.metrics[metric].name);
}

aha_kind aha_evaluation_get(const aha_evaluation* evaluation, size_t metric, size_t method,
                            aha_interval* value) {
  return guarded([&] {
    const MetricSummary& found = found_metric(evaluation, metric, method);
    given(value, "value") = {found.value.mean, found.value.low, found.value.high, found.images};
  });
}

aha_kind aha_evaluation_values(const aha_evaluation* evaluation, size_t metric, size_t method,
                               const double** values) {
  return guarded([&] {
    found_metric(evaluation, metric, method);
    given(values, "values") = evaluation->values[metric][method].data();
  });
}

aha_kind aha_evaluation_difference(const aha_evaluation* evaluation, size_t metric, size_t a, size_t b,
                                   aha_difference* difference) {
  return guarded([&] {
    found_metric(evaluation, metric, a);
    found_metric(evaluation, metric, b);
    std::vector<double> of_a, of_b;
    const auto& values = evaluation->values[metric];
    for (size_t i = 0; i < values[a].size(); ++i) {
      if (!std::isfinite(values[a][i]) || !std::isfinite(values[b][i])) continue;
      of_a.push_back(values[a][i]);
      of_b.push_back(values[b][i]);
    }
    PairedDifference found;
    run_apart([&] { found = paired_difference(of_a, of_b, evaluation->seed, evaluation->ci); });
    given(difference, "difference") = {found.difference.mean, found.difference.low,
                                       found.difference.high, found.p_value,
                                       found.win_rate,        static_cast<int64_t>(of_a.size())};
  });
}

const char* aha_evaluation_remarks(const aha_evaluation* evaluation) {
  return evaluation ? evaluation->remarks.c_str() : "";
}

aha_kind aha_maps_resize(aha_model* model, const float* maps, int64_t n, int64_t height, int64_t width,
                         float* resized) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    given(resized, "resized");
    if (n < 1 || height < 1 || width < 1)
      throw input_error("maps: expected shape (1, 1, 1) or larger, found ({}, {}, {})", n, height, width);
    const Tensor all = torch::from_blob(const_cast<float*>(&given(maps, "maps")), {n, height, width});
    m.session->run([&](const Context&) {
      const int64_t size = m.target->info().input.size;
      const Tensor out = maps_at_size(all, size, size).contiguous();
      std::copy_n(out.data_ptr<float>(), out.numel(), resized);
    });
  });
}

void aha_evaluation_free(aha_evaluation* evaluation) {
  delete evaluation;
}

aha_kind aha_train(aha_model* model, const char* data, const char* out, aha_options options,
                   int (*each)(void* user, const aha_progress* progress), void* user, aha_trained* trained) {
  return guarded([&] {
    aha_model& m = given(model, "model");
    if (m.spec.empty())
      throw input_error("train: expected a model that was loaded by its name or file, found a callable");
    ExplainerRun run;
    set_options(fields(run), options);
    run.target = m.spec;
    run.load = m.load;
    run.data = &given(data, "data");
    run.train.train.out = &given(out, "out");
    if (run.train.train.workers > 1)
      throw input_error("workers: expected 1 in a library, found {}; `aha train` starts several",
                        run.train.train.workers);
    m.session->run([&](const Context& context) {
      const ProgressListener listener([&](const ProgressReport& report) {
        if (!each) return;
        const aha_progress progress{report.what.c_str(), report.note.c_str(), report.done, report.total};
        if (each(user, &progress) != 0) context.cancel->cancel();
      });
      const auto report = train_explainer(run, context);
      if (!report) throw work_error("train: another process has the result");
      const Scores& best = report->train.best;
      if (trained)
        *trained = {report->train.steps,
                    report->images,
                    std::ssize(report->unreadable),
                    score_or_nan(best, "insertion"),
                    score_or_nan(best, "deletion"),
                    report->train.seconds};
    });
  });
}

aha_kind aha_overlay(const aha_image* image, const float* map, int64_t height, int64_t width,
                     const aha_model* model, aha_options options, aha_picture** picture) {
  return guarded([&] {
    check_image_size(height, width);
    HeatOptions heat;
    set_options(
        fields(heat).add("contours", heat.contours, "lines around the top 10, 25 and 50 % of the pixels"),
        options);
    const std::span<const float> values(&given(map, "map"), static_cast<size_t>(height * width));
    const int W = static_cast<int>(width), H = static_cast<int>(height);
    auto made = std::make_unique<aha_picture>();
    run_apart([&] {
      if (!image) {
        made->image = heat_image(values, W, H, heat);
      } else if (image->pixels.defined()) {
        made->image = overlay(image_from_tensor(image->pixels), values, W, H, heat);
      } else if (model) {
        const Image& photo = image->photo;
        made->image = overlay(photo, values, W, H,
                              seen_part(photo.width, photo.height, model->target->info().input), heat);
      } else {
        made->image = overlay(image->photo, values, W, H, heat);
      }
      made->png = png_bytes(made->image);
    });
    hand_out(std::move(made), picture, "picture");
  });
}

void aha_picture_size(const aha_picture* picture, int64_t* height, int64_t* width) {
  if (height) *height = picture ? picture->image.height : 0;
  if (width) *width = picture ? picture->image.width : 0;
}

const uint8_t* aha_picture_rgb(const aha_picture* picture) {
  return picture ? picture->image.rgb.data() : nullptr;
}

const uint8_t* aha_picture_png(const aha_picture* picture, size_t* bytes) {
  if (bytes) *bytes = picture ? picture->png.size() : 0;
  return !picture ? nullptr : reinterpret_cast<const uint8_t*>(picture->png.data());
}

void aha_picture_free(aha_picture* picture) {
  delete picture;
}

}  // extern "C"
