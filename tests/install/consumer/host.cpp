// A program with settings of its own: they are the same after every call, and change no result.
#include <aha/aha.h>
#include <dlfcn.h>
#include <fenv.h>
#include <omp.h>
#include <signal.h>

#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

int g_failures = 0;

void expect(bool truth, const char* what, const std::string& found) {
  if (truth) return;
  std::fprintf(stderr, "after %s: %s\n", what, found.c_str());
  ++g_failures;
}

struct Mode {
  int rounding = 0, traps = 0;
  unsigned flush = 0;  // denormals
  bool operator!=(const Mode& o) const {
    return rounding != o.rounding || traps != o.traps || flush != o.flush;
  }
};

Mode mode_here() {
  Mode mode;
  mode.rounding = fegetround();
  mode.traps = fegetexcept();
#if defined(__SSE__)
  mode.flush = _mm_getcsr() & 0x8040u;
#endif
  return mode;
}

struct State {
  Mode mode;
  int threads = 0, workers_changed = 0;
  std::string locale;
};

State state() {
  State s;
  s.mode = mode_here();
  s.threads = omp_get_max_threads();
  const Mode mine = s.mode;
  int changed = 0;
#pragma omp parallel reduction(+ : changed)
  changed += mode_here() != mine;
  s.workers_changed = changed;
  s.locale = std::setlocale(LC_ALL, nullptr);
  return s;
}

State g_before;

void check(const char* what) {
  const State now = state();
  expect(!(now.mode != g_before.mode), what, "another floating-point mode");
  expect(now.threads == g_before.threads, what, std::to_string(now.threads) + " OpenMP threads");
  expect(now.workers_changed == 0, what, "another mode in the OpenMP threads");
  expect(now.locale == g_before.locale, what, "locale " + now.locale);
  for (int i = 1; i < 32; ++i) {
    struct sigaction action;
    if (sigaction(i, nullptr, &action) == 0 && action.sa_handler != SIG_DFL)
      expect(false, what, "a handler of signal " + std::to_string(i));
  }
}

std::vector<float> ramp(size_t values) {
  std::vector<float> out(values);
  for (size_t i = 0; i < values; ++i) out[i] = static_cast<float>(i * 7919 % 1024) / 1024;
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) return 2;
  const std::string mode = argv[1], model_name = argv[2], photo = argv[3];
  if (mode == "upward") fesetround(FE_UPWARD);
  if (mode == "traps") feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  omp_set_num_threads(3);
  g_before = state();
  const char* again = std::getenv("AHA_STARTED_AGAIN");

  aha::SessionOptions one_thread, two_threads;
  one_thread.threads = 1;
  two_threads.threads = 2;
  one_thread.quiet = two_threads.quiet = true;
  const aha::Session one(one_thread), two(two_threads);
  check("open");
  const auto image = aha::Image::read(photo);
  check("read");
  const aha::Model model = one.load(model_name), same = two.load(model_name);
  check("load");
  std::vector<aha::Explained> a, b;
  std::thread first([&] { a = model.explain({image}); });
  std::thread second([&] { b = same.explain({image}); });
  first.join();
  second.join();
  check("two calls at once");
  expect(a[0].map == b[0].map && a[0].insertion == b[0].insertion, "two calls at once", "another result");

  const size_t side = static_cast<size_t>(model.size());
  const auto pixels = ramp(3 * side * side);
  const auto row = static_cast<ptrdiff_t>(side * sizeof(float));
  const auto floats = aha::Image::from_floats(pixels.data(), model.size(), model.size(), row, sizeof(float),
                                              row * static_cast<ptrdiff_t>(side));
  check("from_floats");
  std::vector<float> logits(static_cast<size_t>(model.classes()));
  const aha_image* handle = floats.get();
  if (aha_classify(model.get(), &handle, 1, nullptr, logits.data()) != AHA_OK) return 3;
  check("classify");
  for (aha_image* under : {floats.get(), image.get(), static_cast<aha_image*>(nullptr)}) {
    aha_picture* picture = nullptr;
    if (aha_overlay(under, a[0].map.data(), a[0].height, a[0].width, model.get(), nullptr, &picture) !=
        AHA_OK)
      return 4;
    check("overlay");
    aha_picture_free(picture);
  }
  const auto result = model.evaluate({image, floats},
                                     {{"one", ramp(2 * side * side)},
                                      {"two",
                                       [&] {
                                         auto twice = a[0].map;
                                         twice.insert(twice.end(), a[0].map.begin(), a[0].map.end());
                                         return twice;
                                       }()}},
                                     model.size(), model.size(), {}, {{"metrics", "ins-del"}});
  check("evaluate");
  result.difference("ins-del", 0, 1);
  check("difference");
  try {
    one.load("no-such-model");
    ++g_failures;
  } catch (const aha::Error& error) {
    expect(error.kind() == aha::Kind::kInput, "an error", error.what());
  }
  check("an error");
  expect(std::getenv("AHA_STARTED_AGAIN") == again, "everything", "the program was started again");
  // The same in every mode: a test compares them.
  std::printf("%s %a %a %a\n", a[0].class_name.c_str(), a[0].map[0], a[0].insertion, logits[0]);
  return g_failures > 0 ? 1 : 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 5;
}
