// What a frozen network provides to FrozenNetwork: packed weights, a workspace for a chunk of images, and the
// way from patch rows to logits and back.
#pragma once

#include <atomic>
#include <memory>

#include "aha/kernels/compose/compose.h"
#include "aha/kernels/kernel_set.h"
#include "aha/nn/chunks.h"
#include "aha/nn/counted_buffers.h"
#include "aha/tensor/tensor.h"

namespace aha {

// What one thread needs for a chunk of images. Networks derive their own.
struct FrozenWorkspace : CountedBuffers {
  FrozenWorkspace(int64_t images, bool save) : capacity(images), saving(save) {}
  virtual ~FrozenWorkspace() = default;

  int64_t capacity;     // images
  bool saving;          // holds what the backward pass needs
  Activations patches;  // geometry.tokens() rows per image, in the form of FrozenBody::pixel_kernels()
  AlignedBuffer<float> logits, dlogits;  // rows rounded_to_panel(classes) and classes apart
  float* dpatches =
      nullptr;  // rows rounded_to_panel(columns) apart, in a buffer that the backward pass has done with
};

// Images of a chunk, at most `most`, so that every thread has the same number of chunks: 20 images for two
// threads are not 8, 8 and 4.
int64_t even_chunk(int64_t images, int64_t most);

struct FrozenBody {
  explicit FrozenBody(const KernelSet& kernels) : kernels(&kernels) {}
  virtual ~FrozenBody() = default;

  const KernelSet* kernels;
  // Pixels are never rounded to bf16: on a trained ViT-Tiny that alone turned the gradient (cosine 0.998 to
  // float32's), everything else rounded together did not (0.9997). The first GEMM is 1 % of the work.
  const KernelSet& pixel_kernels() const { return exact_set_of(*kernels); }
  PatchGeometry geometry;
  int64_t classes = 0;         // 0: an encoder without a head
  int64_t images_a_chunk = 1;  // at most

  virtual std::unique_ptr<FrozenWorkspace> make_workspace(int64_t images, bool save) const = 0;
  // From w.patches to w.logits.
  virtual void forward(FrozenWorkspace& w, int64_t images) const = 0;
  // From w.dlogits to w.dpatches, after forward with a saving workspace.
  virtual void backward(FrozenWorkspace& w, int64_t images) const = 0;
  virtual int64_t packed_bytes() const = 0;

  int64_t chunk_size(int64_t images) const { return even_chunk(images, images_a_chunk); }
  using Pool = ChunkPool<FrozenWorkspace>;
  using Taken = Pool::Taken;
  Taken take(int64_t images, bool save);
  using Make = std::function<std::unique_ptr<FrozenWorkspace>()>;
  Taken take_from(Pool& pool, const std::function<bool(const FrozenWorkspace&)>& fits, const Make& make);
  int64_t largest_workspace() const { return largest_workspace_; }

  // Bytes of workspaces that logits() may keep between the forward pass and the backward pass; chunks beyond
  // them are computed again.
  std::atomic<int64_t> most_kept_bytes = int64_t{2} << 30;

  // `images` (n, 3, H, W), contiguous, as the workspace's patch rows.
  void show(const float* images, int64_t n, FrozenWorkspace& w) const;

  // Runs `work(workspace, first, n)` on chunks of the images of `pixels` (B, 3, H, W), their patch rows
  // already in place.
  void for_chunks(const Tensor& pixels, bool save,
                  const std::function<void(Taken& w, int64_t first, int64_t n)>& work);

 private:
  std::shared_ptr<Pool> pools_[2] = {std::make_shared<Pool>(), std::make_shared<Pool>()};  // by `save`
  std::atomic<int64_t> largest_workspace_ = 0;
};

}  // namespace aha
