// The module aha._aha: the functions of aha_c.h for Python, with numpy arrays. What a user sees is written in
// Python beside it (python/aha); this part owns handles, moves arrays and keeps the interpreter's lock in
// order.
//
// Every call of the library runs without the lock. The library calls back on threads of its own (a callable,
// the progress of a training), which then take it; what a callback raised is raised again where the call was
// made. While a call runs, the caller's thread looks for signals ten times a second, so that Ctrl-C ends it.
#include <aha/aha_c.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace {

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Classes = py::array_t<int64_t, py::array::c_style | py::array::forcecast>;
using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct Exceptions {
  py::object error, input, canceled;
};
Exceptions* g_exceptions = nullptr;  // lives as long as the interpreter

[[noreturn]] void raise(const py::object& type, const std::string& message) {
  PyErr_SetString(type.ptr(), message.c_str());
  throw py::error_already_set();
}

[[noreturn]] void raise_input(const std::string& message) {
  raise(g_exceptions->input, message);
}

// Whatever bytes a file name in it has.
py::str text_from(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

void check(aha_kind kind, const std::string& prefix = "") {
  if (PyErr_Occurred()) throw py::error_already_set();
  if (kind == AHA_OK) return;
  const std::string words = prefix + aha_last_error();
  const py::object& type = kind == AHA_INPUT      ? g_exceptions->input
                           : kind == AHA_CANCELED ? g_exceptions->canceled
                                                  : g_exceptions->error;
  PyErr_SetObject(type.ptr(), text_from(words).ptr());
  throw py::error_already_set();
}

// Where the interpreter ends, a thread that asks it for the lock is killed in the midst of C++, and the
// process with it. From then on callbacks do not ask, and calls of threads that nobody waits for do not
// return.
std::atomic<bool> g_ending = false;
std::thread::id g_ending_thread;
std::atomic<int> g_callbacks = 0;  // that have the lock or wait for it

void end_with_the_interpreter() {
  g_ending_thread = std::this_thread::get_id();
  g_ending = true;
  const py::gil_scoped_release release;
  constexpr auto kEvery = std::chrono::milliseconds(10);
  for (int i = 0; i < 500 && g_callbacks > 0; ++i) std::this_thread::sleep_for(kEvery);
}

// Without the lock; nothing of Python is touched inside.
template <class Call>
aha_kind unlocked(const Call& call) {
  const py::gil_scoped_release release;
  const aha_kind kind = call();
  while (g_ending && std::this_thread::get_id() != g_ending_thread) ::pause();
  return kind;
}

void check_text(const std::string& text, const char* what) {
  if (text.find('\0') != std::string::npos)
    raise_input(std::string(what) + ": expected a text without a zero byte");
}

// {"key", "value", ..., NULL}
class OptionList {
 public:
  explicit OptionList(TextPairs pairs) : pairs_(std::move(pairs)) {
    for (const auto& [key, value] : pairs_) {
      check_text(key, "option");
      check_text(value, key.c_str());
      list_.push_back(key.c_str());
      list_.push_back(value.c_str());
    }
    list_.push_back(nullptr);
  }
  OptionList(const OptionList&) = delete;
  OptionList& operator=(const OptionList&) = delete;
  aha_options get() const { return list_.data(); }

 private:
  TextPairs pairs_;
  std::vector<const char*> list_;
};

// The lock of the interpreter on a thread that may not be Python's; not while the interpreter ends.
class Locked {
 public:
  Locked() {
    ++g_callbacks;
    if (!g_ending) state_ = PyGILState_Ensure();
  }
  ~Locked() {
    if (state_) PyGILState_Release(*state_);
    --g_callbacks;
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  explicit operator bool() const { return state_.has_value(); }

 private:
  std::optional<PyGILState_STATE> state_;
};

// What a callback raised, until the call that it belongs to is over.
class Raised {
 public:
  // Calls `work` with the lock; 1 = it raised.
  template <class Work>
  int guard(const Work& work) {
    const Locked locked;
    if (!locked) return 1;
    try {
      return work();
    } catch (py::error_already_set& error) {
      error_ = std::make_unique<py::error_already_set>(error);
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
      error_ = std::make_unique<py::error_already_set>();
    }
    return 1;
  }
  void clear() { error_.reset(); }
  void check(aha_kind kind) {
    const auto error = std::move(error_);
    if (error && kind != AHA_OK && !PyErr_Occurred()) throw py::error_already_set(*error);
    ::check(kind);
  }

 private:
  std::unique_ptr<py::error_already_set> error_;
};

int look_for_signals(void*) {
  const Locked locked;
  return locked && PyErr_CheckSignals() != 0;  // what it raised stays with the thread
}

class Session {
 public:
  explicit Session(TextPairs options) {
    const OptionList list(std::move(options));
    check(unlocked([&] { return aha_open(list.get(), &handle_); }));
    aha_poll(handle_, look_for_signals, nullptr);
  }
  ~Session() {
    const py::gil_scoped_release release;
    aha_close(handle_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  void cancel() const { aha_cancel(handle_); }
  aha_session* get() const { return handle_; }

 private:
  aha_session* handle_ = nullptr;
};

class Image {
 public:
  explicit Image(aha_image* handle) : handle_(handle, aha_image_free) {}
  static Image read(const std::string& path) {
    aha_image* made = nullptr;
    check_text(path, "path");
    check(unlocked([&] { return aha_image_read(path.c_str(), &made); }));
    return Image(made);
  }
  // (height, width, 3), any strides
  static Image from_bytes(const py::array_t<uint8_t>& pixels) {
    if (pixels.ndim() != 3 || pixels.shape(2) != 3)
      raise_input("pixels: expected bytes of shape (height, width, 3)");
    aha_image* made = nullptr;
    check(unlocked([&] {
      return aha_image_from_u8(pixels.data(), pixels.shape(0), pixels.shape(1), pixels.strides(0),
                               pixels.strides(1), pixels.strides(2), &made);
    }));
    return Image(made);
  }
  // (3, height, width), any strides
  static Image from_floats(const py::array_t<float>& pixels, const std::string& what) {
    if (pixels.ndim() != 3 || pixels.shape(0) != 3)
      raise_input(what + "pixels: expected floats of shape (3, height, width)");
    aha_image* made = nullptr;
    check(unlocked([&] {
            return aha_image_from_f32(pixels.data(), pixels.shape(1), pixels.shape(2), pixels.strides(1),
                                      pixels.strides(2), pixels.strides(0), &made);
          }),
          what);
    return Image(made);
  }
  void rename(const std::string& name) const {
    check_text(name, "name");
    check(aha_image_rename(get(), name.c_str()));
  }
  aha_image* get() const { return handle_.get(); }

 private:
  std::shared_ptr<aha_image> handle_;
};

std::vector<const aha_image*> handles_of(const std::vector<Image>& images) {
  std::vector<const aha_image*> out;
  for (const auto& image : images) out.push_back(image.get());
  return out;
}

// A function's answer as floats of this shape. The functions of the Python part have converted it already.
void copy_answer(const py::object& answer, const std::vector<int64_t>& shape, const char* what, float* to) {
  const auto values = Floats::ensure(answer);
  if (!values) throw py::error_already_set();
  if (std::vector<int64_t>(values.shape(), values.shape() + values.ndim()) != shape)
    raise_input(std::string(what) + ": expected shape " +
                py::str(py::tuple(py::cast(shape))).cast<std::string>() + ", found " +
                py::str(values.attr("shape")).cast<std::string>());
  std::copy_n(values.data(), values.size(), to);
}

class Model {
 public:
  Model(std::shared_ptr<Session> session, const std::string& spec, TextPairs options)
      : session_(std::move(session)) {
    const OptionList list(std::move(options));
    check_text(spec, "model");
    check(unlocked([&] { return aha_load(session_->get(), spec.c_str(), list.get(), &handle_); }));
  }
  // forward(pixels) -> logits, gradient(pixels, weights) -> gradient or None
  Model(std::shared_ptr<Session> session, const std::string& name, int64_t classes, int64_t size,
        py::object forward, py::object gradient)
      : session_(std::move(session)), functions_(new Functions{classes, size, {}, {}, {}}) {
    functions_->forward = std::move(forward);
    functions_->gradient = std::move(gradient);
    check_text(name, "name");
    aha_callable callable{};
    callable.name = name.c_str();
    callable.classes = classes;
    callable.size = size;
    callable.user = functions_.get();
    callable.forward = &Functions::call_forward;
    callable.gradient = functions_->gradient.is_none() ? nullptr : &Functions::call_gradient;
    check(unlocked([&] { return aha_wrap(session_->get(), &callable, &handle_); }));
  }
  ~Model() {
    const py::gil_scoped_release release;
    aha_model_free(handle_);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  aha_model* get() const { return handle_; }
  py::str name() const { return text_from(aha_model_name(handle_)); }
  py::str architecture() const { return text_from(aha_model_architecture(handle_)); }
  int64_t classes() const { return aha_model_classes(handle_); }
  int64_t size() const { return aha_model_size(handle_); }
  py::list class_names() const {
    py::list names;
    for (int64_t i = 0; i < classes(); ++i) names.append(text_from(aha_model_class_name(handle_, i)));
    return names;
  }
  std::string methods() {
    const char* names = nullptr;
    run([&] { return aha_model_methods(handle_, &names); });
    return names;
  }
  void check_method(TextPairs options) {
    const OptionList list(std::move(options));
    run([&] { return aha_model_check(handle_, list.get()); });
  }

  // What the callable raises during the call is raised here.
  template <class Call>
  void run(const Call& call) {
    if (functions_) functions_->raised.clear();
    const aha_kind kind = unlocked(call);
    if (functions_)
      functions_->raised.check(kind);
    else
      check(kind);
  }

 private:
  struct Functions {
    int64_t classes, size;
    py::object forward, gradient;
    Raised raised;

    Floats pixels_from(const float* pixels, int64_t n) const {
      return Floats({n, int64_t{3}, size, size}, pixels);
    }
    static int call_forward(void* user, const float* pixels, int64_t n, float* logits) {
      auto& f = *static_cast<Functions*>(user);
      return f.raised.guard([&] {
        copy_answer(f.forward(f.pixels_from(pixels, n)), {n, f.classes}, "logits of the callable", logits);
        return 0;
      });
    }
    static int call_gradient(void* user, const float* pixels, const float* weights, int64_t n,
                             float* gradient) {
      auto& f = *static_cast<Functions*>(user);
      return f.raised.guard([&] {
        copy_answer(f.gradient(f.pixels_from(pixels, n), Floats({n, f.classes}, weights)),
                    {n, 3, f.size, f.size}, "gradient of the callable", gradient);
        return 0;
      });
    }
  };

  std::shared_ptr<Session> session_;
  std::unique_ptr<Functions> functions_;
  aha_model* handle_ = nullptr;
};

const int64_t* pointer_to(const std::optional<Classes>& classes, size_t images) {
  if (!classes) return nullptr;
  if (classes->ndim() != 1 || static_cast<size_t>(classes->size()) != images)
    raise_input("classes: expected one for each of " + std::to_string(images) + " images, found " +
                std::to_string(classes->size()));
  return classes->data();
}

// (pixels, logits) of images as the model gets them
py::tuple classify(Model& model, const std::vector<Image>& images) {
  const auto handles = handles_of(images);
  const auto n = static_cast<int64_t>(images.size());
  Floats pixels({n, int64_t{3}, model.size(), model.size()}), logits({n, model.classes()});
  float *to_pixels = pixels.mutable_data(), *to_logits = logits.mutable_data();
  model.run([&] { return aha_classify(model.get(), handles.data(), handles.size(), to_pixels, to_logits); });
  return py::make_tuple(std::move(pixels), std::move(logits));
}

// (maps, facts): maps (N, H, W) in the library's own memory, which goes with the array
py::tuple explain(Model& model, const std::vector<Image>& images, const std::optional<Classes>& classes,
                  TextPairs options) {
  const auto handles = handles_of(images);
  const OptionList list(std::move(options));
  const int64_t* wanted = pointer_to(classes, images.size());
  aha_explanation* made = nullptr;
  model.run(
      [&] { return aha_explain(model.get(), handles.data(), handles.size(), wanted, list.get(), &made); });
  const py::capsule owner(made,
                          [](void* handle) { aha_explanation_free(static_cast<aha_explanation*>(handle)); });
  const float* maps = nullptr;
  int64_t n = 0, height = 0, width = 0;
  check(aha_explanation_maps(made, &maps, &n, &height, &width));
  py::list facts;
  for (int64_t i = 0; i < n; ++i) {
    aha_explained e{};
    check(aha_explanation_get(made, static_cast<size_t>(i), &e));
    py::dict one;
    one["class_index"] = e.class_index;
    one["class_name"] = text_from(e.class_name);
    one["probability"] = e.probability;
    one["deletion"] = e.deletion;
    one["insertion"] = e.insertion;
    one["random_deletion"] = e.random_deletion;
    one["random_insertion"] = e.random_insertion;
    one["steps"] = e.steps;
    one["loss"] = e.loss;
    one["forwards"] = e.forwards;
    one["backwards"] = e.backwards;
    one["seconds"] = e.seconds;
    facts.append(one);
  }
  return py::make_tuple(py::array_t<float>({n, height, width}, maps, owner), facts);
}

class Evaluation {
 public:
  Evaluation(Model& model, const std::vector<Image>& images, const std::optional<Classes>& classes,
             const std::vector<std::string>& names, const std::vector<Floats>& maps, TextPairs options)
      : images_(images.size()) {
    const auto handles = handles_of(images);
    const OptionList list(std::move(options));
    const int64_t* wanted = pointer_to(classes, images.size());
    std::vector<const char*> whose;
    std::vector<const float*> values;
    int64_t height = 0, width = 0;
    for (size_t m = 0; m < maps.size(); ++m) {
      const Floats& one = maps[m];
      if (one.ndim() != 3 || static_cast<size_t>(one.shape(0)) != images.size() ||
          (m > 0 && (one.shape(1) != height || one.shape(2) != width)))
        raise_input("maps: expected the same shape (images, height, width) of all");
      height = one.shape(1);
      width = one.shape(2);
      values.push_back(one.data());
      check_text(names.at(m), "name");
      whose.push_back(names[m].c_str());
    }
    model.run([&] {
      return aha_evaluate(model.get(), handles.data(), handles.size(), wanted, whose.data(), values.data(),
                          values.size(), height, width, list.get(), &handle_);
    });
  }
  ~Evaluation() { aha_evaluation_free(handle_); }
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  py::list metrics() const {  // (name, higher_is_better)
    py::list out;
    for (size_t i = 0; i < aha_evaluation_metrics(handle_); ++i)
      out.append(py::make_tuple(aha_evaluation_metric(handle_, i),
                                aha_evaluation_higher_is_better(handle_, i) != 0));
    return out;
  }
  // mean, low, high, images, per image
  py::tuple value(size_t metric, size_t method) const {
    aha_interval value{};
    const double* each = nullptr;
    check(aha_evaluation_get(handle_, metric, method, &value));
    check(aha_evaluation_values(handle_, metric, method, &each));
    return py::make_tuple(value.mean, value.low, value.high, value.images,
                          py::array_t<double>(static_cast<py::ssize_t>(images_), each));
  }
  // mean, low, high, p value, win rate, images
  py::tuple difference(size_t metric, size_t a, size_t b) const {
    aha_difference d{};
    check(unlocked([&] { return aha_evaluation_difference(handle_, metric, a, b, &d); }));
    return py::make_tuple(d.mean, d.low, d.high, d.p_value, d.win_rate, d.images);
  }
  py::str remarks() const { return text_from(aha_evaluation_remarks(handle_)); }

 private:
  size_t images_;
  aha_evaluation* handle_ = nullptr;
};

Floats resized_maps(Model& model, const Floats& maps) {
  if (maps.ndim() != 3) raise_input("maps: expected shape (images, height, width)");
  const int64_t n = maps.shape(0), height = maps.shape(1), width = maps.shape(2);
  Floats out({n, model.size(), model.size()});
  const float* from = maps.data();
  float* to = out.mutable_data();
  model.run([&] { return aha_maps_resize(model.get(), from, n, height, width, to); });
  return out;
}

py::dict train(Model& model, const std::string& data, const std::string& out, TextPairs options,
               py::object callback) {
  struct Listener {
    py::object callback;
    Raised raised;
    static int tell(void* user, const aha_progress* p) {
      auto& self = *static_cast<Listener*>(user);
      return self.raised.guard([&] {
        return self.callback(text_from(p->what), text_from(p->note), p->done, p->total).is(py::bool_(false))
                   ? 1
                   : 0;
      });
    }
  } listener{std::move(callback), {}};
  const OptionList list(std::move(options));
  check_text(data, "data");
  check_text(out, "out");
  aha_trained trained{};
  const auto each = listener.callback.is_none() ? nullptr : &Listener::tell;
  listener.raised.check(unlocked([&] {
    return aha_train(model.get(), data.c_str(), out.c_str(), list.get(), each, &listener, &trained);
  }));
  py::dict report;
  report["steps"] = trained.steps;
  report["images"] = trained.images;
  report["unreadable"] = trained.unreadable;
  report["insertion"] = trained.insertion;
  report["deletion"] = trained.deletion;
  report["seconds"] = trained.seconds;
  return report;
}

// (pixels (height, width, 3), PNG)
py::tuple overlay(const std::optional<Image>& image, const Floats& map, const Model* model,
                  TextPairs options) {
  if (map.ndim() != 2) raise_input("map: expected shape (height, width)");
  const OptionList list(std::move(options));
  const float* values = map.data();
  const int64_t height = map.shape(0), width = map.shape(1);
  aha_picture* made = nullptr;
  check(unlocked([&] {
    return aha_overlay(image ? image->get() : nullptr, values, height, width, model ? model->get() : nullptr,
                       list.get(), &made);
  }));
  const py::capsule owner(made, [](void* handle) { aha_picture_free(static_cast<aha_picture*>(handle)); });
  int64_t H = 0, W = 0;
  aha_picture_size(made, &H, &W);
  size_t bytes = 0;
  const uint8_t* png = aha_picture_png(made, &bytes);
  return py::make_tuple(py::array_t<uint8_t>({H, W, int64_t{3}}, aha_picture_rgb(made), owner),
                        py::bytes(reinterpret_cast<const char*>(png), bytes));
}

std::string records(const std::string& what) {
  const char* json = nullptr;
  check(unlocked([&] { return aha_records(what.c_str(), &json); }));
  return json;
}

py::object exception(py::module_& m, const char* name, const py::handle& bases, const char* doc) {
  const std::string full = std::string("aha.") + name;
  const auto made =
      py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr));
  if (!made) throw py::error_already_set();
  m.attr(name) = made;
  return made;
}

}  // namespace

PYBIND11_MODULE(_aha, m) {
  m.doc() = "The C interface of aha; use the module aha.";
  m.attr("__version__") = aha_version();
  m.def("end_with_the_interpreter", &end_with_the_interpreter);
  ::pthread_atfork(nullptr, nullptr, [] { g_callbacks = 0; });  // the child has none of the threads
  auto* made = new Exceptions;
  made->error = exception(m, "Error", PyExc_RuntimeError, "The call was right, the work failed.");
  made->input = exception(m, "InputError", py::make_tuple(made->error, py::handle(PyExc_ValueError)),
                          "The call or an input was wrong: says what was expected, found and available.");
  made->canceled = exception(m, "Canceled", made->error, "A callback or Session.cancel() ended the call.");
  g_exceptions = made;

  py::class_<Session, std::shared_ptr<Session>>(m, "Session")
      .def(py::init<TextPairs>())
      .def("cancel", &Session::cancel);
  py::class_<Image>(m, "Image")
      .def_static("read", &Image::read)
      .def_static("from_bytes", &Image::from_bytes)
      .def_static("from_floats", &Image::from_floats)
      .def("rename", &Image::rename);
  py::class_<Model>(m, "Model")
      .def(py::init<std::shared_ptr<Session>, const std::string&, TextPairs>())
      .def(py::init<std::shared_ptr<Session>, const std::string&, int64_t, int64_t, py::object, py::object>())
      .def_property_readonly("name", &Model::name)
      .def_property_readonly("architecture", &Model::architecture)
      .def_property_readonly("classes", &Model::classes)
      .def_property_readonly("size", &Model::size)
      .def("class_names", &Model::class_names)
      .def("methods", &Model::methods)
      .def("check", &Model::check_method);
  py::class_<Evaluation>(m, "Evaluation")
      .def(py::init<Model&, const std::vector<Image>&, const std::optional<Classes>&,
                    const std::vector<std::string>&, const std::vector<Floats>&, TextPairs>())
      .def("metrics", &Evaluation::metrics)
      .def("value", &Evaluation::value)
      .def("difference", &Evaluation::difference)
      .def("remarks", &Evaluation::remarks);
  m.def("classify", &classify);
  m.def("explain", &explain);
  m.def("resized_maps", &resized_maps);
  m.def("train", &train);
  m.def("overlay", &overlay, py::arg("image"), py::arg("map"), py::arg("model").none(true),
        py::arg("options"));
  m.def("records", &records);
}
