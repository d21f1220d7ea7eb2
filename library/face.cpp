// libaha.so: what programs link to. It depends on no numeric library: when it is loaded it sets the
// environment that OpenBLAS, oneDNN and OpenMP read, and at the first call it loads libaha_core.so beside it,
// and with it libtorch. Where OpenBLAS was there before, the core says so once (api/session.cpp).
#include <aha/aha_c.h>
#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <exception>
#include <string>

#include "aha/base/own_thread.h"
#include "aha/base/startup.h"

namespace {

// Asked for at once: the name that the library was loaded by may be relative to a folder that is left later.
const std::string& own_folder() {
  static const std::string folder = [] {
    Dl_info info{};
    char path[PATH_MAX] = {};
    if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || !info.dli_fname ||
        !::realpath(info.dli_fname, path))
      return std::string();
    const std::string file(path);
    return file.substr(0, file.rfind('/') + 1);
  }();
  return folder;
}

__attribute__((constructor)) void before_numeric_libraries() {
  aha::set_library_environment();
  own_folder();
}

thread_local std::string t_not_loaded;

void* core() {
  static std::string why;
  static void* const loaded = [] {
    void* handle = nullptr;
    try {
      // Threads that the libraries start while they are loaded inherit the mode of the one that loads.
      aha::own_thread([&] {
        handle = ::dlopen((own_folder() + "libaha_core.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) why = std::string("cannot load the library: ") + ::dlerror();
      }).join();
    } catch (const std::exception& error) {
      why = std::string("cannot load the library: ") + error.what();
    }
    return handle;
  }();
  if (!loaded) t_not_loaded = why;
  return loaded;
}

template <class Function>
Function* function(const char* name) {
  return core() ? reinterpret_cast<Function*>(::dlsym(core(), name)) : nullptr;
}

}  // namespace

// A function that can fail says that the core is not there; the others are about handles that only the core
// makes.
#define FALLIBLE(name, parameters, arguments)                  \
  aha_kind name parameters {                                   \
    static auto* const call = function<decltype(name)>(#name); \
    return call ? call arguments : (core(), AHA_FAILED);       \
  }
#define SURE(result, name, parameters, arguments)              \
  result name parameters {                                     \
    static auto* const call = function<decltype(name)>(#name); \
    return call ? call arguments : result();                   \
  }
using Text = const char*;
using Bytes = const uint8_t*;

extern "C" {

const char* aha_version(void) {
  return AHA_VERSION_TEXT;
}

const char* aha_last_error(void) {
  static auto* const call = function<decltype(aha_last_error)>("aha_last_error");
  return call ? call() : t_not_loaded.c_str();
}

FALLIBLE(aha_records, (const char* what, const char** json), (what, json))
FALLIBLE(aha_open, (aha_options o, aha_session** s), (o, s))
SURE(void, aha_close, (aha_session * s), (s))
SURE(void, aha_cancel, (aha_session * s), (s))
SURE(void, aha_poll, (aha_session * s, int (*poll)(void*), void* user), (s, poll, user))
FALLIBLE(aha_load, (aha_session * s, const char* spec, aha_options o, aha_model** m), (s, spec, o, m))
FALLIBLE(aha_wrap, (aha_session * s, const aha_callable* c, aha_model** m), (s, c, m))
SURE(void, aha_model_free, (aha_model * m), (m))
SURE(Text, aha_model_name, (const aha_model* m), (m))
SURE(Text, aha_model_architecture, (const aha_model* m), (m))
SURE(int64_t, aha_model_classes, (const aha_model* m), (m))
SURE(int64_t, aha_model_size, (const aha_model* m), (m))
SURE(Text, aha_model_class_name, (const aha_model* m, int64_t i), (m, i))
FALLIBLE(aha_model_methods, (aha_model * m, const char** names), (m, names))
FALLIBLE(aha_model_check, (aha_model * m, aha_options o), (m, o))
FALLIBLE(aha_classify, (aha_model * m, const aha_image* const* i, size_t n, float* pixels, float* logits),
         (m, i, n, pixels, logits))
FALLIBLE(aha_image_read, (const char* path, aha_image** i), (path, i))
FALLIBLE(aha_image_from_u8,
         (const uint8_t* first, int64_t h, int64_t w, ptrdiff_t row, ptrdiff_t column, ptrdiff_t channel,
          aha_image** i),
         (first, h, w, row, column, channel, i))
FALLIBLE(aha_image_from_f32,
         (const float* first, int64_t h, int64_t w, ptrdiff_t row, ptrdiff_t column, ptrdiff_t channel,
          aha_image** i),
         (first, h, w, row, column, channel, i))
FALLIBLE(aha_image_rename, (aha_image * i, const char* name), (i, name))
SURE(void, aha_image_free, (aha_image * i), (i))
FALLIBLE(aha_explain,
         (aha_model * m, const aha_image* const* i, size_t n, const int64_t* classes, aha_options o,
          aha_explanation** e),
         (m, i, n, classes, o, e))
FALLIBLE(aha_explanation_get, (const aha_explanation* e, size_t i, aha_explained* one), (e, i, one))
FALLIBLE(aha_explanation_maps,
         (const aha_explanation* e, const float** maps, int64_t* n, int64_t* h, int64_t* w),
         (e, maps, n, h, w))
SURE(void, aha_explanation_free, (aha_explanation * e), (e))
FALLIBLE(aha_evaluate,
         (aha_model * m, const aha_image* const* i, size_t n, const int64_t* classes,
          const char* const* names, const float* const* maps, size_t methods, int64_t h, int64_t w,
          aha_options o, aha_evaluation** e),
         (m, i, n, classes, names, maps, methods, h, w, o, e))
SURE(size_t, aha_evaluation_metrics, (const aha_evaluation* e), (e))
SURE(Text, aha_evaluation_metric, (const aha_evaluation* e, size_t metric), (e, metric))
SURE(int, aha_evaluation_higher_is_better, (const aha_evaluation* e, size_t metric), (e, metric))
FALLIBLE(aha_evaluation_get, (const aha_evaluation* e, size_t metric, size_t method, aha_interval* v),
         (e, metric, method, v))
FALLIBLE(aha_evaluation_values, (const aha_evaluation* e, size_t metric, size_t method, const double** v),
         (e, metric, method, v))
FALLIBLE(aha_evaluation_difference,
         (const aha_evaluation* e, size_t metric, size_t a, size_t b, aha_difference* d),
         (e, metric, a, b, d))
SURE(Text, aha_evaluation_remarks, (const aha_evaluation* e), (e))
FALLIBLE(aha_maps_resize, (aha_model * m, const float* maps, int64_t n, int64_t h, int64_t w, float* resized),
         (m, maps, n, h, w, resized))
SURE(void, aha_evaluation_free, (aha_evaluation * e), (e))
FALLIBLE(aha_train,
         (aha_model * m, const char* data, const char* out, aha_options o,
          int (*each)(void*, const aha_progress*), void* user, aha_trained* t),
         (m, data, out, o, each, user, t))
FALLIBLE(aha_overlay,
         (const aha_image* i, const float* map, int64_t h, int64_t w, const aha_model* m, aha_options o,
          aha_picture** p),
         (i, map, h, w, m, o, p))
SURE(void, aha_picture_size, (const aha_picture* p, int64_t* h, int64_t* w), (p, h, w))
SURE(Bytes, aha_picture_rgb, (const aha_picture* p), (p))
SURE(Bytes, aha_picture_png, (const aha_picture* p, size_t* bytes), (p, bytes))
SURE(void, aha_picture_free, (aha_picture * p), (p))

}  // extern "C"
