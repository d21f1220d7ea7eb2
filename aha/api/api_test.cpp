// The library as a program of somebody else sees it; includes none of our other headers.
#include <aha/aha.h>
#include <fenv.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <signal.h>
#include <xmmintrin.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

namespace {

constexpr const char* kModel = "cifar10-vit8";

// Smooth colored images of 32 x 32 pixels.
aha::Image test_image(int which) {
  std::vector<uint8_t> rgb(32 * 32 * 3);
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x)
      for (int c = 0; c < 3; ++c)
        rgb[(y * 32 + x) * 3 + c] =
            static_cast<uint8_t>(128 + 100 * std::sin(0.2 * (x + which) * (c + 1) + 0.3 * y));
  aha::Image image = aha::Image::from_bytes(rgb.data(), 32, 32, 32 * 3);
  image.rename("test" + std::to_string(which));
  return image;
}

// logit_0 is the red of the left upper quarter, logit_1 is 1.
void red_corner(const float* pixels, int64_t n, float* logits) {
  for (int64_t i = 0; i < n; ++i) {
    const float* red = pixels + i * 3 * 16 * 16;
    float sum = 0;
    for (int y = 0; y < 8; ++y) sum = std::accumulate(red + 16 * y, red + 16 * y + 8, sum);
    logits[2 * i] = sum / 8;
    logits[2 * i + 1] = 1;
  }
}

void red_corner_gradient(const float*, const float* weights, int64_t n, float* gradient) {
  std::fill_n(gradient, n * 3 * 16 * 16, 0.0f);
  for (int64_t i = 0; i < n; ++i)
    for (int y = 0; y < 8; ++y) std::fill_n(gradient + i * 3 * 16 * 16 + 16 * y, 8, weights[2 * i] / 8);
}

// Share of the map's sum in the left upper quarter.
double corner_share(const aha::Explained& e) {
  double corner = 0, all = 0;
  for (int64_t y = 0; y < e.height; ++y)
    for (int64_t x = 0; x < e.width; ++x) {
      const double value = std::max(0.0f, e.map[static_cast<size_t>(y * e.width + x)]);
      all += value;
      if (y < e.height / 2 && x < e.width / 2) corner += value;
    }
  return corner / all;
}

aha::Image white_floats() {
  const std::vector<float> ones(3 * 16 * 16, 1.0f);
  return aha::Image::from_floats(ones.data(), 16, 16, 16 * 4, 4, 16 * 16 * 4);
}

TEST(Api, ExplainsWithScoresStepsAndPasses) {
  const aha::Session session({.threads = 2, .quiet = true});
  const aha::Model model = session.load(kModel);
  EXPECT_EQ(model.classes(), 10);
  const auto plain = model.explain({test_image(0), test_image(1)});
  const auto refined = model.explain({test_image(0)}, {.refine = 2, .classes = {3}});
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].map.size(), static_cast<size_t>(model.size() * model.size()));
  EXPECT_EQ(plain[0].class_name, model.class_name(plain[0].class_index));
  EXPECT_GT(plain[0].insertion, 0);
  EXPECT_EQ(plain[0].steps, 0);
  EXPECT_EQ(refined[0].class_index, 3);
  EXPECT_EQ(refined[0].steps, 2);
  EXPECT_GT(refined[0].backwards, 0);
}

TEST(Api, LeavesTheCallersModeAndThreadsAsTheyWere) {
  const unsigned mode = _mm_getcsr() & ~0x8040u;  // denormals count here
  _mm_setcsr(mode);
  omp_set_num_threads(3);
  const aha::Session one({.threads = 1, .quiet = true}), two({.threads = 2, .quiet = true});
  const auto a = one.load(kModel).explain({test_image(0)}, {.method = "gradient", .score = false});
  const auto b = two.load(kModel).explain({test_image(0)}, {.method = "gradient", .score = false});
  EXPECT_EQ(_mm_getcsr() & 0x8040u, 0u);
  EXPECT_EQ(omp_get_max_threads(), 3);
  unsigned worker_modes = 0;
#pragma omp parallel reduction(| : worker_modes)
  worker_modes |= _mm_getcsr() & 0x8040u;
  EXPECT_EQ(worker_modes, 0u);
  EXPECT_EQ(a[0].map, b[0].map);
}

TEST(Api, CallsOutsideASessionLeaveTheCallersModeAndThreadsToo) {
  const unsigned mode = _mm_getcsr() & ~0x8040u;
  _mm_setcsr(mode);
  const aha::Session session({.quiet = true});
  const auto model = session.wrap("corner", 2, 16, red_corner);
  aha::Maps a{"a", std::vector<float>(512)}, b{"b", std::vector<float>(512)};
  std::iota(a.values.begin(), a.values.end(), 0.0f);
  std::iota(b.values.rbegin(), b.values.rend(), 0.0f);
  const auto result = model.evaluate({white_floats(), white_floats()}, {a, b}, 16, 16, {},
                                     {{"metrics", "deletion"}, {"references", "black"}});
  omp_set_num_threads(3);
  result.difference("deletion", 0, 1);
  EXPECT_EQ(_mm_getcsr() & 0x8040u, 0u);
  aha::Explained map;
  map.map.assign(a.values.begin(), a.values.begin() + 256);
  map.height = map.width = 16;
  EXPECT_EQ(model.overlay(white_floats(), map).rgb.size(), 16u * 16 * 3);
  EXPECT_EQ(_mm_getcsr() & 0x8040u, 0u);
  EXPECT_EQ(omp_get_max_threads(), 3);
}

TEST(Api, TheCallersRoundingTrapsAndSignalsStayOutside) {
  const auto logits = [] {
    const aha::Session session({.quiet = true});
    return session.load(kModel).logits({test_image(0)});
  };
  const auto usual = logits();
  fesetround(FE_UPWARD);
  feenableexcept(FE_DIVBYZERO | FE_INVALID);
  const auto upward = logits();
  fesetenv(FE_DFL_ENV);
  EXPECT_EQ(usual, upward);

  const aha::Session session({.quiet = true});
  sigset_t blocked;
  sigemptyset(&blocked);
  const auto model = session.wrap("signals", 2, 16, [&](const float*, int64_t n, float* logits) {
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    std::fill_n(logits, 2 * n, 0.0f);
  });
  model.logits({white_floats()});
  EXPECT_TRUE(sigismember(&blocked, SIGINT));
  EXPECT_FALSE(sigismember(&blocked, SIGSEGV));
}

TEST(Api, SessionsWithDifferentThreadsGiveTheSameAtTheSameTime) {
  std::vector<std::vector<float>> maps(4);
  std::vector<std::thread> callers;
  for (size_t i = 0; i < maps.size(); ++i)
    callers.emplace_back([&maps, i] {
      const aha::Session session({.threads = static_cast<int>(i) + 1, .quiet = true});
      maps[i] = session.load(kModel).explain({test_image(2)})[0].map;
    });
  for (auto& caller : callers) caller.join();
  for (const auto& map : maps) EXPECT_EQ(map, maps[0]);
}

TEST(Api, APollMayCancelAndMayNotCall) {
  const aha::Session session({.quiet = true});
  const auto slow = session.wrap("slow", 2, 16, [](const float*, int64_t n, float* logits) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::fill_n(logits, 2 * n, 0.0f);
  });
  struct Polled {
    aha_model* model;
    aha_kind kind;
  } polled{slow.get(), AHA_OK};
  const auto poll = [](void* user) {
    auto& p = *static_cast<Polled*>(user);
    const char* names = nullptr;
    p.kind = aha_model_methods(p.model, &names);
    return 1;
  };
  aha_poll(session.get(), poll, &polled);
  try {
    slow.explain({white_floats()}, {.method = "rise:masks=2000", .score = false});
    ADD_FAILURE() << "not canceled";
  } catch (const aha::Error& error) {
    EXPECT_EQ(error.kind(), aha::Kind::kCanceled);
  }
  EXPECT_EQ(polled.kind, AHA_INPUT);
}

TEST(Api, NullHandlesAreRefused) {
  EXPECT_EQ(aha_open(nullptr, nullptr), AHA_INPUT);
  EXPECT_NE(std::string(aha_last_error()).find("found null"), std::string::npos);
  aha_model* model = nullptr;
  EXPECT_EQ(aha_load(nullptr, kModel, nullptr, &model), AHA_INPUT);
  EXPECT_STREQ(aha_model_name(nullptr), "");
  EXPECT_EQ(aha_model_classes(nullptr), 0);
  EXPECT_EQ(aha_model_class_name(nullptr, 0), nullptr);
  EXPECT_EQ(aha_evaluation_metrics(nullptr), 0u);
  EXPECT_EQ(aha_picture_rgb(nullptr), nullptr);
  aha_explained one;
  EXPECT_EQ(aha_explanation_get(nullptr, 0, &one), AHA_INPUT);
  aha_close(nullptr);
  aha_model_free(nullptr);
  aha_image_free(nullptr);
}

TEST(Api, ACallableIsExplainedAndItsGradientIsUsed) {
  const aha::Session session({.quiet = true});
  const auto black_box = session.wrap("corner", 2, 16, red_corner);
  const auto rise = black_box.explain({white_floats()}, {.method = "occlusion", .class_wanted = "0"});
  EXPECT_GT(corner_share(rise[0]), 0.6);
  try {
    black_box.explain({white_floats()}, {.method = "gradient"});
    ADD_FAILURE() << "no gradient, yet a map";
  } catch (const aha::Error& error) {
    EXPECT_EQ(error.kind(), aha::Kind::kInput);
    EXPECT_NE(std::string(error.what()).find("came without a function"), std::string::npos) << error.what();
  }
  const auto whole = session.wrap("corner", 2, 16, red_corner, red_corner_gradient);
  const auto gradient = whole.explain({white_floats()}, {.method = "gradient", .class_wanted = "0"});
  EXPECT_NEAR(corner_share(gradient[0]), 1, 1e-6);
}

TEST(Api, EvaluatesMapsOfAnyTool) {
  const aha::Session session({.quiet = true});
  const auto model = session.wrap("corner", 2, 16, red_corner);
  std::vector<aha::Image> images(4, white_floats());
  aha::Maps good{"good", {}}, bad{"bad", {}};
  for (int i = 0; i < 4; ++i)
    for (int p = 0; p < 256; ++p) {
      const bool corner = p / 16 < 8 && p % 16 < 8;
      good.values.push_back(static_cast<float>(corner) + 1e-4f * static_cast<float>(p));
      bad.values.push_back(static_cast<float>(!corner) + 1e-4f * static_cast<float>(p));
    }
  const auto result =
      model.evaluate(images, {good, bad}, 16, 16, {}, {{"metrics", "ins-del"}, {"references", "black"}});
  EXPECT_EQ(result.metrics(), (std::vector<std::string>{"deletion", "insertion", "ins-del"}));
  EXPECT_GT(result.value("ins-del", 0).mean, result.value("ins-del", 1).mean + 0.2);
  EXPECT_EQ(result.per_image("ins-del", 0, 4).size(), 4u);
  EXPECT_GT(result.difference("ins-del", 0, 1).low, 0);
  EXPECT_THROW(model.evaluate(images, {good, bad}, 16, 8), aha::Error);
}

TEST(Api, AllMapsAreOneArrayWhateverTheBatches) {
  const aha::Session session({.quiet = true});
  const auto model = session.load(kModel);
  std::vector<aha::Image> images;
  for (int i = 0; i < 11; ++i) images.push_back(test_image(i));
  std::vector<const aha_image*> handles;
  for (const auto& image : images) handles.push_back(image.get());
  const char* const options[] = {"method", "gradient", "score", "false", nullptr};
  aha_explanation* made = nullptr;
  ASSERT_EQ(aha_explain(model.get(), handles.data(), handles.size(), nullptr, options, &made), AHA_OK);
  const float* maps = nullptr;
  int64_t n = 0, height = 0, width = 0;
  ASSERT_EQ(aha_explanation_maps(made, &maps, &n, &height, &width), AHA_OK);
  EXPECT_EQ(n, 11);
  for (int64_t i = 0; i < n; ++i) {
    aha_explained one;
    ASSERT_EQ(aha_explanation_get(made, static_cast<size_t>(i), &one), AHA_OK);
    EXPECT_EQ(one.map, maps + i * height * width);
    const auto alone =
        model.explain({images[static_cast<size_t>(i)]}, {.method = "gradient", .score = false});
    EXPECT_EQ(alone[0].map, std::vector<float>(one.map, one.map + height * width));
  }
  std::vector<float> resized(static_cast<size_t>(n * model.size() * model.size()));
  ASSERT_EQ(aha_maps_resize(model.get(), maps, n, height, width, resized.data()), AHA_OK);
  EXPECT_EQ(resized, std::vector<float>(maps, maps + n * height * width));
  aha_explanation_free(made);
}

TEST(Api, AMethodIsCheckedBeforeThereIsAnImage) {
  const aha::Session session({.quiet = true});
  const auto model = session.wrap("corner", 2, 16, red_corner);
  const auto kind_of = [&](const char* method) {
    const char* const options[] = {"method", method, nullptr};
    return aha_model_check(model.get(), options);
  };
  EXPECT_EQ(kind_of("rise:masks=8"), AHA_OK);
  EXPECT_EQ(kind_of("gradient"), AHA_INPUT);
  EXPECT_EQ(kind_of("rise:mask=8"), AHA_INPUT);
  EXPECT_EQ(kind_of("chefer"), AHA_INPUT);
  const char* json = nullptr;
  ASSERT_EQ(aha_records("methods", &json), AHA_OK);
  EXPECT_NE(std::string(json).find("\"rise\""), std::string::npos);
  EXPECT_EQ(aha_records("models", &json), AHA_INPUT);
}

TEST(Api, ErrorsHaveKindsAndTheProgramsWords) {
  const aha::Session session({.quiet = true});
  try {
    session.load("cifar10-vit9");
    ADD_FAILURE() << "loaded";
  } catch (const aha::Error& error) {
    EXPECT_EQ(error.kind(), aha::Kind::kInput);
    EXPECT_NE(std::string(error.what()).find("cifar10-vit8"), std::string::npos) << error.what();
  }
  const auto failing = session.wrap("broken", 2, 16, [](const float*, int64_t, float*) { throw 1; });
  try {
    failing.explain({white_floats()}, {.method = "center"});
    ADD_FAILURE() << "explained";
  } catch (const aha::Error& error) {
    EXPECT_EQ(error.kind(), aha::Kind::kFailed);
  }
}

}  // namespace
