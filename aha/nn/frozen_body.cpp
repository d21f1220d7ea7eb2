#include "aha/nn/frozen_body.h"

#include "aha/base/parallel.h"

namespace aha {

std::vector<float> floats_from(const Tensor& tensor) {
  const Tensor flat = plain_from(tensor);
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

Tensor doubles_from(const Tensor& tensor) {
  return tensor.detach().to(torch::kCPU, torch::kFloat64);
}

Tensor plain_from(const Tensor& tensor) {
  return tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous();
}

Product::Product(Format format, const Tensor& w, const Tensor& b)
    : outputs(w.size(0)), inputs(w.size(1)), bias(rounded_to_panel(w.size(0))) {
  forward = PackedWeights::forward(format, floats_from(w).data(), outputs, inputs);
  if (b.defined()) std::ranges::copy(floats_from(b), bias.data());
}

const PackedWeights& Product::backward(const KernelSet& kernels, int room) const {
  static thread_local PackedWeights rooms[2];
  transpose_weights(kernels, forward, rooms[room]);
  return rooms[room];
}

Folded fold_norm(const Tensor& weight, const Tensor& bias, const Tensor& gamma, const Tensor& beta) {
  const Tensor w = doubles_from(weight);
  const Tensor b = bias.defined() ? doubles_from(bias) : torch::zeros({w.size(0)}, torch::kFloat64);
  return {w * doubles_from(gamma), b + w.matmul(doubles_from(beta))};
}

Folded fold_scale(const Tensor& weight, const Tensor& bias, const Tensor& scale) {
  Folded out{doubles_from(weight),
             bias.defined() ? doubles_from(bias) : torch::zeros({weight.size(0)}, torch::kFloat64)};
  if (scale.defined()) out = {out.weight * doubles_from(scale).unsqueeze(1), out.bias * doubles_from(scale)};
  return out;
}

int64_t FrozenBody::chunk_size(int64_t images) const {
  const int64_t a_thread = (images + threads() - 1) / threads();
  return std::clamp<int64_t>(a_thread, 1, images_a_chunk);
}

std::unique_ptr<FrozenWorkspace> FrozenBody::take(int64_t images, bool save) {
  {
    const std::lock_guard lock(guard_);
    for (auto& held : pool_)
      if (held && held->capacity >= images && held->saving == save) {
        auto out = std::move(held);
        std::erase(pool_, nullptr);
        return out;
      }
    // A workspace that is too small will not be asked for again soon: make room.
    std::erase_if(pool_, [&](const auto& held) { return held->capacity < images && held->saving == save; });
  }
  auto made = make_workspace(images, save);
  const std::lock_guard lock(guard_);
  largest_workspace_ = std::max(largest_workspace_, made->bytes);
  return made;
}

void FrozenBody::give_back(std::unique_ptr<FrozenWorkspace> workspace) {
  const std::lock_guard lock(guard_);
  pool_.push_back(std::move(workspace));
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

void FrozenBody::for_chunks(
    const Tensor& pixels, bool save,
    const std::function<void(std::unique_ptr<FrozenWorkspace>& w, int64_t first, int64_t n)>& work) {
  const Tensor in = plain_from(pixels);  // (B, 3, H, W)
  const int64_t B = in.size(0), chunk = chunk_size(B), size = int64_t{3} * geometry.height * geometry.width;
  parallel_for((B + chunk - 1) / chunk, [&](int64_t c, int) {
    const int64_t first = c * chunk, n = std::min(chunk, B - first);
    auto w = take(chunk, save);
    show(in.data_ptr<float>() + first * size, n, *w);
    work(w, first, n);
    if (w) give_back(std::move(w));
  });
}

}  // namespace aha
