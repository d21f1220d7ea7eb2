// aha in C++: which pixels drove an image classifier's decision. Standard library only; link to aha::aha.
//
//   aha::Session session({.threads = 2});
//   aha::Model model = session.load("cifar10-vit4");
//   auto e = model.explain({aha::Image::read("cat.png")}, {.method = "aha", .refine = 3});
//   e[0].map;  // height * width floats, higher = more important
//   e[0].class_name, e[0].insertion, e[0].deletion;
//
// Inline over the C interface (aha_c.h): no C++ passes the library's border, so compilers may differ. What
// fails throws aha::Error with its kind and the words that the program prints. aha_c.h says what holds of
// threads and of the order in which handles are freed; a Model keeps its Session, so that objects may go in
// any order.
#pragma once

#if __cplusplus < 201703L
#error "aha.h needs C++17; aha_c.h is C"
#endif

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "aha/aha_c.h"

namespace aha {
inline namespace v0 {

enum class Kind { kFailed = AHA_FAILED, kInput = AHA_INPUT, kCanceled = AHA_CANCELED };

class Error : public std::runtime_error {
 public:
  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// Options by name, as the command line has them; for those that the structs below do not name.
using Options = std::map<std::string, std::string>;

namespace detail {

inline void check(aha_kind kind) {
  if (kind != AHA_OK) throw Error(static_cast<Kind>(kind), aha_last_error());
}

// {"key", "value", ..., NULL}
class OptionList {
 public:
  explicit OptionList(Options options) : options_(std::move(options)) {
    for (const auto& [key, value] : options_) {
      list_.push_back(key.c_str());
      list_.push_back(value.c_str());
    }
    list_.push_back(nullptr);
  }
  OptionList(const OptionList&) = delete;
  OptionList& operator=(const OptionList&) = delete;
  aha_options get() const { return list_.data(); }

 private:
  Options options_;
  std::vector<const char*> list_;
};

}  // namespace detail

struct SessionOptions {
  int threads = 0;                // 0 = all cores
  std::string precision = "f32";  // or bf16
  uint64_t seed = 0;
  int batch_size = 0;  // 0 = the call's own choice
  bool quiet = false;  // no remarks on stderr
  std::string device = "cpu";
};

// 8-bit photos of any size are resized as the model's recipe says; floats are what the model gets.
class Image {
 public:
  static Image read(const std::string& path) {
    aha_image* made = nullptr;
    detail::check(aha_image_read(path.c_str(), &made));
    return Image(made);
  }
  // Strides in bytes from a row, a column and a channel to the next; red, green, blue. Both copy.
  static Image from_bytes(const uint8_t* first, int64_t height, int64_t width, ptrdiff_t row,
                          ptrdiff_t column = 3, ptrdiff_t channel = 1) {
    aha_image* made = nullptr;
    detail::check(aha_image_from_u8(first, height, width, row, column, channel, &made));
    return Image(made);
  }
  static Image from_floats(const float* first, int64_t height, int64_t width, ptrdiff_t row, ptrdiff_t column,
                           ptrdiff_t channel) {
    aha_image* made = nullptr;
    detail::check(aha_image_from_f32(first, height, width, row, column, channel, &made));
    return Image(made);
  }
  void rename(const std::string& name) { detail::check(aha_image_rename(get(), name.c_str())); }
  aha_image* get() const { return handle_.get(); }

 private:
  explicit Image(aha_image* handle) : handle_(handle, aha_image_free) {}
  std::shared_ptr<aha_image> handle_;
};

struct ExplainOptions {
  std::string method = "aha";  // NAME:key=value
  int refine = 0;
  std::string budget = {};                 // "200ms"
  std::string class_wanted = "predicted";  // an index or a name
  std::vector<int64_t> classes = {};       // one for each image, instead
  std::string explainer = {};              // empty = the bundled one of this model
  bool score = true;
};

// As aha_explained, with memory of its own.
struct Explained {
  std::vector<float> map;  // height * width
  int64_t height = 0, width = 0, class_index = 0;
  std::string class_name;
  double probability = 0, deletion = 0, insertion = 0, random_deletion = 0, random_insertion = 0;
  int64_t steps = 0;
  double loss = 0, forwards = 0, backwards = 0, seconds = 0;
};

struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // height * width * 3
  std::vector<uint8_t> png;  // the same as a file
};

struct Maps {
  std::string name;           // whose they are
  std::vector<float> values;  // images * height * width
};

class Evaluation {
 public:
  explicit Evaluation(aha_evaluation* handle) : handle_(handle, aha_evaluation_free) {}
  std::vector<std::string> metrics() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < aha_evaluation_metrics(get()); ++i)
      names.push_back(aha_evaluation_metric(get(), i));
    return names;
  }
  bool higher_is_better(const std::string& metric) const {
    return aha_evaluation_higher_is_better(get(), index(metric)) != 0;
  }
  // method: its place in the list of maps
  aha_interval value(const std::string& metric, size_t method) const {
    aha_interval out;
    detail::check(aha_evaluation_get(get(), index(metric), method, &out));
    return out;
  }
  // One for each of `images` images, NaN where it was not measured.
  std::vector<double> per_image(const std::string& metric, size_t method, size_t images) const {
    const double* values = nullptr;
    detail::check(aha_evaluation_values(get(), index(metric), method, &values));
    return {values, values + images};
  }
  aha_difference difference(const std::string& metric, size_t a, size_t b) const {
    aha_difference out;
    detail::check(aha_evaluation_difference(get(), index(metric), a, b, &out));
    return out;
  }
  std::string remarks() const { return aha_evaluation_remarks(get()); }
  aha_evaluation* get() const { return handle_.get(); }

 private:
  size_t index(const std::string& metric) const {
    const auto names = metrics();
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == metric) return i;
    throw Error(Kind::kInput, "metric '" + metric + "' was not evaluated");
  }
  std::shared_ptr<aha_evaluation> handle_;
};

struct Progress {
  std::string what, note;
  int64_t done = 0, total = 0;
};

class Model {
 public:
  std::string name() const { return aha_model_name(get()); }
  std::string architecture() const { return aha_model_architecture(get()); }
  int64_t classes() const { return aha_model_classes(get()); }
  int64_t size() const { return aha_model_size(get()); }
  std::string class_name(int64_t index) const {
    const char* found = aha_model_class_name(get(), index);
    return found ? found : "";
  }

  std::vector<Explained> explain(const std::vector<Image>& images, const ExplainOptions& o = {}) const {
    Options list = {{"method", o.method},
                    {"refine", std::to_string(o.refine)},
                    {"class", o.class_wanted},
                    {"score", o.score ? "true" : "false"}};
    if (!o.budget.empty()) list["budget"] = o.budget;
    if (!o.explainer.empty()) list["explainer"] = o.explainer;
    if (!o.classes.empty() && o.classes.size() != images.size())
      throw Error(Kind::kInput, "classes: expected " + std::to_string(images.size()) + ", found " +
                                    std::to_string(o.classes.size()));
    aha_explanation* made = nullptr;
    const auto handles = handles_of(images);
    detail::check(aha_explain(get(), handles.data(), handles.size(),
                              o.classes.empty() ? nullptr : o.classes.data(),
                              detail::OptionList(std::move(list)).get(), &made));
    const std::unique_ptr<aha_explanation, void (*)(aha_explanation*)> owner(made, aha_explanation_free);
    std::vector<Explained> out;
    for (size_t i = 0; i < images.size(); ++i) {
      aha_explained e;
      detail::check(aha_explanation_get(made, i, &e));
      out.push_back({{e.map, e.map + e.height * e.width},
                     e.height,
                     e.width,
                     e.class_index,
                     e.class_name,
                     e.probability,
                     e.deletion,
                     e.insertion,
                     e.random_deletion,
                     e.random_insertion,
                     e.steps,
                     e.loss,
                     e.forwards,
                     e.backwards,
                     e.seconds});
    }
    return out;
  }

  // images.size() * classes()
  std::vector<float> logits(const std::vector<Image>& images) const {
    std::vector<float> out(images.size() * static_cast<size_t>(classes()));
    const auto handles = handles_of(images);
    detail::check(aha_classify(get(), handles.data(), handles.size(), nullptr, out.data()));
    return out;
  }

  // A map's colors over the part of the image that the model sees. Options: colors, scale, opacity, contours.
  Picture overlay(const Image& image, const Explained& e, Options options = {}) const {
    aha_picture* made = nullptr;
    detail::check(aha_overlay(image.get(), e.map.data(), e.height, e.width, get(),
                              detail::OptionList(std::move(options)).get(), &made));
    const std::unique_ptr<aha_picture, void (*)(aha_picture*)> owner(made, aha_picture_free);
    Picture out;
    aha_picture_size(made, &out.height, &out.width);
    const uint8_t* rgb = aha_picture_rgb(made);
    out.rgb.assign(rgb, rgb + out.height * out.width * 3);
    size_t bytes = 0;
    const uint8_t* png = aha_picture_png(made, &bytes);
    out.png.assign(png, png + bytes);
    return out;
  }

  // The methods that fit, by name.
  std::vector<std::string> methods() const {
    const char* names = nullptr;
    detail::check(aha_model_methods(get(), &names));
    std::vector<std::string> out;
    std::istringstream lines(names);
    for (std::string line; std::getline(lines, line);) out.push_back(line);
    return out;
  }

  // Maps of any tool, each images.size() * height * width values. No classes = the predicted ones. Options:
  // metrics, references, protocol, steps, area, ties, score.
  Evaluation evaluate(const std::vector<Image>& images, const std::vector<Maps>& maps, int64_t height,
                      int64_t width, const std::vector<int64_t>& classes = {}, Options options = {}) const {
    std::vector<const char*> names;
    std::vector<const float*> values;
    for (const auto& one : maps) {
      if (one.values.size() != images.size() * static_cast<size_t>(height * width))
        throw Error(Kind::kInput, "maps of " + one.name + ": expected " + std::to_string(images.size()) +
                                      " x " + std::to_string(height) + " x " + std::to_string(width) +
                                      " values, found " + std::to_string(one.values.size()));
      names.push_back(one.name.c_str());
      values.push_back(one.values.data());
    }
    if (!classes.empty() && classes.size() != images.size())
      throw Error(Kind::kInput, "classes: expected one for each image");
    const auto handles = handles_of(images);
    aha_evaluation* made = nullptr;
    detail::check(aha_evaluate(
        get(), handles.data(), handles.size(), classes.empty() ? nullptr : classes.data(), names.data(),
        values.data(), maps.size(), height, width, detail::OptionList(std::move(options)).get(), &made));
    return Evaluation(made);
  }

  // An explainer for this model into the folder `out`; `each` returns false to stop.
  aha_trained train(const std::string& data, const std::string& out, Options options = {},
                    std::function<bool(const Progress&)> each = {}) const {
    aha_trained trained{};
    const auto tell = [](void* user, const aha_progress* p) {
      try {
        const auto& call = *static_cast<std::function<bool(const Progress&)>*>(user);
        return !call || call({p->what, p->note, p->done, p->total}) ? 0 : 1;
      } catch (...) {
        return 1;
      }
    };
    detail::check(aha_train(get(), data.c_str(), out.c_str(), detail::OptionList(std::move(options)).get(),
                            tell, &each, &trained));
    return trained;
  }

  aha_model* get() const { return handle_.get(); }

 private:
  friend class Session;
  struct Functions {
    std::function<void(const float*, int64_t, float*)> forward;
    std::function<void(const float*, const float*, int64_t, float*)> gradient;
  };
  Model(aha_model* handle, std::shared_ptr<aha_session> session, std::shared_ptr<Functions> functions = {})
      : handle_(handle,
                [session = std::move(session), functions](aha_model* model) { aha_model_free(model); }) {}
  static std::vector<const aha_image*> handles_of(const std::vector<Image>& images) {
    std::vector<const aha_image*> out;
    for (const auto& image : images) out.push_back(image.get());
    return out;
  }
  std::shared_ptr<aha_model> handle_;
};

class Session {
 public:
  explicit Session(const SessionOptions& o = {}) {
    aha_session* made = nullptr;
    detail::check(aha_open(detail::OptionList({{"threads", std::to_string(o.threads)},
                                               {"precision", o.precision},
                                               {"seed", std::to_string(o.seed)},
                                               {"batch-size", std::to_string(o.batch_size)},
                                               {"quiet", o.quiet ? "true" : "false"},
                                               {"device", o.device}})
                               .get(),
                           &made));
    handle_ = std::shared_ptr<aha_session>(made, aha_close);
  }
  // As --target takes it; options: input-size, mean, std.
  Model load(const std::string& spec, Options options = {}) const {
    aha_model* made = nullptr;
    detail::check(aha_load(get(), spec.c_str(), detail::OptionList(std::move(options)).get(), &made));
    return Model(made, handle_);
  }
  // A function of yours: pixels (n, 3, size, size) -> logits (n, classes); the gradient of sum_c weights_c
  // logit_c where there is a function for it. What they throw becomes a failure of the call.
  Model wrap(const std::string& name, int64_t classes, int64_t size,
             std::function<void(const float* pixels, int64_t n, float* logits)> forward,
             std::function<void(const float* pixels, const float* weights, int64_t n, float* gradient)>
                 gradient = {}) const {
    auto functions = std::make_shared<Model::Functions>();
    functions->forward = std::move(forward);
    functions->gradient = std::move(gradient);
    aha_callable callable{};
    callable.name = name.c_str();
    callable.classes = classes;
    callable.size = size;
    callable.user = functions.get();
    callable.forward = [](void* user, const float* pixels, int64_t n, float* logits) {
      try {
        static_cast<Model::Functions*>(user)->forward(pixels, n, logits);
        return 0;
      } catch (...) {
        return 1;
      }
    };
    if (functions->gradient)
      callable.gradient = [](void* user, const float* pixels, const float* weights, int64_t n, float* out) {
        try {
          static_cast<Model::Functions*>(user)->gradient(pixels, weights, n, out);
          return 0;
        } catch (...) {
          return 1;
        }
      };
    aha_model* made = nullptr;
    detail::check(aha_wrap(get(), &callable, &made));
    return Model(made, handle_, std::move(functions));
  }
  void cancel() const { aha_cancel(get()); }
  aha_session* get() const { return handle_.get(); }

 private:
  std::shared_ptr<aha_session> handle_;
};

}  // namespace v0
}  // namespace aha
