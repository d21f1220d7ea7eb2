#include "aha/nn/frozen_network.h"

#include <atomic>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/elementwise/elementwise.h"
#include "aha/nn/frozen_engine.h"
#include "aha/nn/plain_tensors.h"

namespace aha {
namespace {

// d loss / d pixels of one image from the rows of its patches.
void pixels_from_patch_rows(const PatchGeometry& g, const float* rows, int64_t stride, float* pixels) {
  const int across = g.width / g.patch;
  constexpr double kOfAValue = 50;  // operations: a division
  shared_ranges(g.patches(), 1, kOfAValue * static_cast<double>(g.patches() * g.columns()),
                [&](int64_t from, int64_t end) {
                  for (int64_t p = from; p < end; ++p) {
                    const float* row = rows + (g.prefix_tokens + p) * stride;
                    const int64_t top = p / across * g.patch, left = p % across * g.patch;
                    for (int c = 0; c < 3; ++c)
                      for (int y = 0; y < g.patch; ++y)
                        for (int x = 0; x < g.patch; ++x)
                          pixels[(c * g.height + top + y) * g.width + left + x] =
                              static_cast<float>(row[(c * g.patch + y) * g.patch + x] / g.std[c]);
                  }
                });
}

// The whole network as one node: keeps chunks' workspaces until the gradient has passed, as many as may be
// kept; the others are computed again in the backward pass, so that memory does not grow with the batch.
struct LogitsFunction : torch::autograd::Function<LogitsFunction> {
  struct State : torch::CustomClassHolder {
    std::shared_ptr<FrozenBody> net;
    std::vector<FrozenBody::Taken> chunks;  // null = to be computed again
    int64_t chunk = 0;
    std::atomic<int64_t> kept_bytes = 0;
    bool may_keep(int64_t bytes) {
      if (kept_bytes.fetch_add(bytes) + bytes <= net->most_kept_bytes) return true;
      kept_bytes -= bytes;
      return false;
    }
  };

  static Tensor run(const std::shared_ptr<FrozenBody>& net, const Tensor& pixels, State* keep) {
    const int64_t B = pixels.size(0), chunk = net->chunk_size(B), stride = rounded_to_panel(net->classes);
    Tensor out = torch::empty({B, net->classes});
    if (keep) {
      keep->net = net;
      keep->chunk = chunk;
      keep->chunks.resize((B + chunk - 1) / chunk);
    }
    net->for_chunks(pixels, keep != nullptr, [&](FrozenBody::Taken& w, int64_t first, int64_t n) {
      net->forward(*w, n);
      for (int64_t i = 0; i < n; ++i)
        std::memcpy(out.data_ptr<float>() + (first + i) * net->classes, w->logits.data() + i * stride,
                    sizeof(float) * net->classes);
      if (keep && keep->may_keep(w->bytes)) keep->chunks[first / chunk] = std::move(w);
    });
    return out;
  }

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& pixels,
                        const std::shared_ptr<FrozenBody>& net) {
    auto state = c10::make_intrusive<State>();
    Tensor out = run(net, pixels, state.get());
    context->saved_data["state"] = c10::IValue::make_capsule(state);
    context->save_for_backward({pixels});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    auto holder = context->saved_data["state"].toCapsule();
    auto& state = static_cast<State&>(*holder);
    const auto& net = state.net;
    const Tensor dlogits = plain_from(grads[0]);  // (B, C)
    const int64_t B = dlogits.size(0), chunk = state.chunk, tokens = net->geometry.tokens();
    const Tensor pixels = plain_from(context->get_saved_variables()[0]);
    Tensor out = torch::zeros(pixels.sizes());
    const int64_t image_size = out[0].numel();
    parallel_pieces(static_cast<int64_t>(state.chunks.size()), [&](int64_t c) {
      const int64_t first = c * chunk, n = std::min(chunk, B - first),
                    stride = rounded_to_panel(net->geometry.columns());
      FrozenBody::Taken again = state.chunks[c] ? nullptr : net->take(chunk, true);
      FrozenWorkspace& w = again ? *again : *state.chunks[c];
      if (again) {
        net->show(pixels.data_ptr<float>() + first * image_size, n, w);
        net->forward(w, n);
      }
      std::memcpy(w.dlogits.data(), dlogits.data_ptr<float>() + first * net->classes,
                  sizeof(float) * n * net->classes);
      net->backward(w, n);
      for (int64_t i = 0; i < n; ++i)
        pixels_from_patch_rows(net->geometry, w.dpatches + i * tokens * stride, stride,
                               out.data_ptr<float>() + (first + i) * image_size);
    });
    return {out.to(grads[0].device()), Tensor()};
  }
};

// The score of class t, and in d (null = not wanted) its derivative by the logits.
float logit_score(const FrozenBody& net, const float* logits, int64_t t, float* d) {
  if (d) {
    std::fill_n(d, net.classes, 0.f);
    d[t] = 1;
  }
  return logits[t];
}

// dp_t / dlogit_c = p_t ([c = t] - p_c). The logits become probabilities.
float probability_score(const FrozenBody& net, float* logits, int64_t t, float* d) {
  softmax_rows(*net.kernels, 1, net.classes, logits, rounded_to_panel(net.classes), nullptr);
  const float p = logits[t];
  if (d) {
    for (int64_t k = 0; k < net.classes; ++k) d[k] = -p * logits[k];
    d[t] += p;
  }
  return p;
}

}  // namespace

FrozenNetwork::FrozenNetwork(std::shared_ptr<FrozenBody> body) : body_(std::move(body)) {}
FrozenNetwork::~FrozenNetwork() = default;

const KernelSet& FrozenNetwork::kernels() const {
  return *body_->kernels;
}
int64_t FrozenNetwork::packed_bytes() const {
  return body_->packed_bytes();
}
int64_t FrozenNetwork::workspace_bytes() const {
  return body_->largest_workspace();
}

void FrozenNetwork::check_pixels(const Tensor& pixels) const {
  check_shape(pixels, {-1, 3, body_->geometry.height, body_->geometry.width}, "pixels");
}

Tensor FrozenNetwork::checked_classes(const Tensor& classes, int64_t images) const {
  check_shape(classes, {images}, "classes");
  const Tensor found = classes.to(torch::kCPU, torch::kInt64).contiguous();
  if (images == 0) return found;
  const int64_t least = found.min().item<int64_t>(), most = found.max().item<int64_t>();
  if (least < 0 || most >= body_->classes)
    throw input_error("classes: expected 0..{}, found {}..{}", body_->classes - 1, least, most);
  return found;
}

void FrozenNetwork::keep_at_most(int64_t bytes) {
  body_->most_kept_bytes = bytes;
}

Tensor FrozenNetwork::logits(const Tensor& pixels) {
  check_pixels(pixels);
  if (body_->classes == 0) throw input_error("logits: this network is an encoder without a head");
  if (!torch::GradMode::is_enabled() || !pixels.requires_grad())
    return LogitsFunction::run(body_, pixels, nullptr).to(pixels.device());
  return LogitsFunction::apply(pixels, body_);
}

PerturbedScores FrozenNetwork::perturbed_scores(const PerturbedImages& images, bool with_gradient) {
  FrozenBody& net = *body_;
  const int64_t B = images.keep.size(0), S = images.keep.size(1), K = images.keep.size(2);
  check_shape(images.pixels, {B, 3, net.geometry.height, net.geometry.width}, "pixels");
  check_shape(images.reference, {B, 3, net.geometry.height, net.geometry.width}, "reference");
  check_shape(images.region, {net.geometry.height, net.geometry.width}, "region");
  if (net.classes == 0) throw input_error("probabilities: this network is an encoder without a head");
  const Tensor pixels = plain_from(images.pixels), reference = plain_from(images.reference),
               keep = plain_from(images.keep);
  const Tensor region = images.region.to(torch::kCPU, torch::kInt32).contiguous();
  const Tensor classes = checked_classes(images.classes, B);
  PerturbedScores result{torch::empty({B, S}), with_gradient ? torch::empty({B, S, K}) : Tensor()};

  const int64_t size = int64_t{3} * net.geometry.height * net.geometry.width;
  const auto image_of = [&](const Tensor& stack, int64_t b) {
    return std::span<const float>(stack.data_ptr<float>() + b * size, static_cast<size_t>(size));
  };
  std::vector<std::optional<PatchSource>> sources(B);
  parallel_for(B, [&](int64_t b, int) {
    sources[b].emplace(net.geometry, image_of(pixels, b), image_of(reference, b),
                       std::span<const int32_t>(region.data_ptr<int32_t>(), region.numel()), K);
  });
  // One list of B * S perturbed images, cut into chunks wherever it falls.
  const int64_t total = B * S, chunk = net.chunk_size(total), tokens = net.geometry.tokens();
  const int64_t stride = rounded_to_panel(net.geometry.columns()),
                logit_stride = rounded_to_panel(net.classes);
  const auto keep_of = [&](int64_t i) {
    return std::span<const float>(keep.data_ptr<float>() + i * K, static_cast<size_t>(K));
  };
  parallel_pieces((total + chunk - 1) / chunk, [&](int64_t c) {
    const int64_t first = c * chunk, n = std::min(chunk, total - first);
    auto w = net.take(chunk, with_gradient);
    for (int64_t i = 0; i < n; ++i)
      compose(net.pixel_kernels(), *sources[(first + i) / S], keep_of(first + i), i * tokens, w->patches);
    net.forward(*w, n);
    for (int64_t i = 0; i < n; ++i) {
      float* logits = w->logits.data() + i * logit_stride;
      const int64_t target = classes.data_ptr<int64_t>()[(first + i) / S];
      float* d = with_gradient ? w->dlogits.data() + i * net.classes : nullptr;
      result.scores.data_ptr<float>()[first + i] = images.score == Score::kLogit
                                                       ? logit_score(net, logits, target, d)
                                                       : probability_score(net, logits, target, d);
    }
    if (with_gradient) {
      net.backward(*w, n);
      for (int64_t i = 0; i < n; ++i)
        compose_backward(
            *net.kernels, *sources[(first + i) / S], w->dpatches + i * tokens * stride, stride,
            std::span<float>(result.gradient.data_ptr<float>() + (first + i) * K, static_cast<size_t>(K)));
    }
  });
  return result;
}

}  // namespace aha
