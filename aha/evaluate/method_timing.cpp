#include "aha/evaluate/method_timing.h"

#include "aha/base/error.h"
#include "aha/base/timer.h"

namespace aha {
namespace {

constexpr double kTimingSeconds = 5;

}  // namespace

Timing time_method(Method& method, const ImageBatch& batch, const Tensor& classes, int runs,
                   const Context& context) {
  const auto once = [&](int64_t b) {
    const Timer timer;
    method
        .attribute(batch.pixels.narrow(0, b, 1), classes.narrow(0, b, 1).to(batch.pixels.device()),
                   std::vector<uint64_t>{image_stream(batch.pixels[b])}, context)
        .maps.cpu();
    return timer.seconds();
  };
  try {
    const double first = once(0);
    if (first >= kTimingSeconds) return {first, 1};
    double total = 0;
    int done = 0;
    while (done < runs && total < kTimingSeconds) total += once(done++ % batch.size());
    return {total / done, done};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCanceled) throw;
    return {};  // its rows say why
  }
}

}  // namespace aha
