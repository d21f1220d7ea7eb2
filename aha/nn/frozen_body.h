// What a frozen network provides to FrozenNetwork: packed weights, a workspace for a chunk of images, and the
// way from patch rows to logits and back.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "aha/kernels/compose/compose.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/core/packed_weights.h"
#include "aha/tensor/tensor.h"

namespace aha {

std::vector<float> floats_from(const Tensor& tensor);
Tensor doubles_from(const Tensor& tensor);
Tensor plain_from(const Tensor& tensor);  // on the CPU, float32, contiguous, without gradient

// y = x W^T + b
struct Product {
  int64_t outputs = 0, inputs = 0;
  PackedWeights forward;
  AlignedBuffer<float> bias;

  Product() = default;
  Product(Format format, const Tensor& w, const Tensor& b);  // b may be undefined
  int64_t bytes() const { return forward.bytes(); }

  // The pack of the way back, in a room of this thread: there until the thread asks for another in the same room.
  const PackedWeights& backward(const KernelSet& kernels, int room = 0) const;
};

struct Folded {
  Tensor weight, bias;  // float64
};
// LayerNorm's gamma and beta go into the product that reads it: W (gamma xhat + beta) + b.
Folded fold_norm(const Tensor& weight, const Tensor& bias, const Tensor& gamma, const Tensor& beta);
// LayerScale goes into the rows of the product before it. An undefined scale is 1.
Folded fold_scale(const Tensor& weight, const Tensor& bias, const Tensor& scale);

// What one thread needs for a chunk of images. Networks derive their own.
struct FrozenWorkspace {
  FrozenWorkspace(int64_t images, bool save) : capacity(images), saving(save) {}
  virtual ~FrozenWorkspace() = default;

  int64_t capacity;     // images
  bool saving;          // holds what the way back needs
  Activations patches;  // geometry.tokens() rows an image, in the form of FrozenBody::pixel_kernels()
  AlignedBuffer<float> logits, dlogits;  // rows rounded_to_strip(classes) and classes apart
  float* dpatches = nullptr;             // rows rounded_to_strip(columns) apart, in a buffer that the way back has done with
  int64_t bytes = 0;

 protected:
  AlignedBuffer<float> floats(int64_t n) {
    bytes += 4 * n;
    return AlignedBuffer<float>(n);
  }
  Activations operand(Format format, int64_t rows, int64_t columns) {
    bytes += rounded_to_strip(rows) * rounded_to_strip(columns) * (format == Format::kBf16 ? 2 : 4);
    return Activations(format, rows, columns);
  }
  Slopes slopes(Format format, int64_t rows, int64_t columns) {
    Slopes made(format, rows, columns);
    bytes += made.bytes();
    return made;
  }
};

struct FrozenBody {
  explicit FrozenBody(const KernelSet& kernels) : kernels(&kernels) {}
  virtual ~FrozenBody() = default;

  const KernelSet* kernels;
  // Pixels are never rounded to bf16: on a trained ViT-Tiny that alone turned the gradient (cosine 0.998 to
  // float32's), everything else rounded together did not (0.9997). The first product is 1 % of the work.
  const KernelSet& pixel_kernels() const { return exact_set_of(*kernels); }
  PatchGeometry geometry;
  int64_t classes = 0;         // 0: an encoder without a head
  int64_t images_a_chunk = 1;  // at most

  virtual std::unique_ptr<FrozenWorkspace> make_workspace(int64_t images, bool save) const = 0;
  // Throws where this network has none.
  virtual void check_way_back() const {}
  // From w.patches to w.logits.
  virtual void forward(FrozenWorkspace& w, int64_t images) const = 0;
  // From w.dlogits to w.dpatches, after forward with a saving workspace.
  virtual void backward(FrozenWorkspace& w, int64_t images) const = 0;
  virtual int64_t packed_bytes() const = 0;

  int64_t chunk_size(int64_t images) const;
  std::unique_ptr<FrozenWorkspace> take(int64_t images, bool save);
  void give_back(std::unique_ptr<FrozenWorkspace> workspace);
  int64_t largest_workspace() const { return largest_workspace_; }

  // Bytes of workspaces that logits() may keep between the way forward and the way back; chunks beyond them are computed again.
  std::atomic<int64_t> most_kept_bytes = int64_t{2} << 30;

  // `images` (n, 3, H, W), contiguous, as the workspace's patch rows.
  void show(const float* images, int64_t n, FrozenWorkspace& w) const;

  // Runs `work(workspace, first, n)` on chunks of the images of `pixels` (B, 3, H, W), their patch rows
  // already in place.
  void for_chunks(
      const Tensor& pixels, bool save,
      const std::function<void(std::unique_ptr<FrozenWorkspace>& w, int64_t first, int64_t n)>& work);

 private:
  std::mutex guard_;  // of all below
  std::vector<std::unique_ptr<FrozenWorkspace>> pool_;
  int64_t largest_workspace_ = 0;
};

}  // namespace aha
