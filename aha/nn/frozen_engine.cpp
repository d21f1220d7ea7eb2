#include "aha/nn/frozen_engine.h"

#include "aha/base/parallel.h"
#include "aha/base/shared_for.h"
#include "aha/nn/plain_tensors.h"

namespace aha {

int64_t even_chunk(int64_t images, int64_t most) {
  const int64_t a_thread = std::max<int64_t>(1, (images + threads() - 1) / threads());
  const int64_t chunks = (a_thread + most - 1) / most;
  return (a_thread + chunks - 1) / chunks;
}

FrozenBody::Taken FrozenBody::take(int64_t images, bool save) {
  return take_from(
      *pools_[save], [&](const FrozenWorkspace& held) { return held.capacity >= images; },
      [&] { return make_workspace(images, save); });
}

FrozenBody::Taken FrozenBody::take_from(Pool& pool, const std::function<bool(const FrozenWorkspace&)>& fits,
                                        const Make& make) {
  return pool.take(fits, [&] {
    auto made = make();
    int64_t largest = largest_workspace_;
    while (made->bytes > largest && !largest_workspace_.compare_exchange_weak(largest, made->bytes)) continue;
    return made;
  });
}

void FrozenBody::show(const float* images, int64_t n, FrozenWorkspace& w) const {
  static constexpr float kShown[] = {1.f};
  const int64_t size = int64_t{3} * geometry.height * geometry.width;
  const std::vector<int32_t> region(static_cast<size_t>(geometry.height) * geometry.width, 0);
  for (int64_t i = 0; i < n; ++i) {
    // An unperturbed image is one whose reference is itself.
    const std::span<const float> image(images + i * size, static_cast<size_t>(size));
    compose(pixel_kernels(), PatchSource(geometry, image, image, region, 1), kShown, i * geometry.tokens(),
            w.patches);
  }
}

void FrozenBody::for_chunks(const Tensor& pixels, bool save,
                            const std::function<void(Taken& w, int64_t first, int64_t n)>& work) {
  const Tensor in = plain_from(pixels);  // (B, 3, H, W)
  const int64_t B = in.size(0), chunk = chunk_size(B), size = int64_t{3} * geometry.height * geometry.width;
  parallel_pieces((B + chunk - 1) / chunk, [&](int64_t c) {
    const int64_t first = c * chunk, n = std::min(chunk, B - first);
    auto w = take(chunk, save);
    show(in.data_ptr<float>() + first * size, n, *w);
    work(w, first, n);
  });
}

}  // namespace aha
