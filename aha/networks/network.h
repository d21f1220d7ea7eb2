// What every network of ours offers, whichever family it is of (family.h): it runs, it shows taps, it learns,
// and it may have a fast engine for frozen weights. Its parameters' names are the canonical weight names.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "aha/base/context.h"
#include "aha/networks/classifier.h"

namespace torch::nn {
class Module;
}

namespace aha {

// A frozen network on fast kernels, for inputs of one size. Const after it was made: safe from several
// threads. An image's numbers do not depend on its batch mates, nor on the number of threads.
class Engine {
 public:
  virtual ~Engine() = default;
  // pixels (B, 3, size, size) in [0, 1] -> logits (B, C), differentiable in the pixels
  virtual Tensor logits(const Tensor& pixels) = 0;
  // Nothing where the engine has no way of its own.
  virtual std::optional<PerturbedScores> perturbed_scores(const PerturbedImages&, bool with_gradient) {
    return std::nullopt;
  }
  // The tensors under these tap names, without gradient. An attention may be the class token's row alone, (B,
  // heads, 1, T).
  virtual bool shows(const std::vector<std::string>& taps) const { return false; }
  virtual std::vector<Tensor> taps(const Tensor& pixels, const std::vector<std::string>& names) { return {}; }
  struct Relevance {
    Tensor tokens;             // (B, T)
    Tensor by_block;           // (B, blocks, T) by the direct rule
    std::vector<Tensor> taps;  // of the same forward pass
  };
  virtual bool gives_relevance() const { return false; }
  virtual Relevance relevance(const Tensor& pixels, const Tensor& classes,
                              const std::vector<std::string>& taps, TokenRelevance rule) {
    return {};
  }
  // As Classifier's. False, or nothing, where the engine has no way of its own.
  virtual bool visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit&,
                               const AttentionVisitor&) {
    return false;
  }
  virtual std::optional<Tensor> patch_subset_logits(const Tensor& pixels, const Tensor& patches) {
    return std::nullopt;
  }
  virtual EngineMemory memory() const { return {}; }
};

class Network {
 public:
  virtual ~Network() = default;
  virtual torch::nn::Module& module() = 0;
  virtual const char* family() const = 0;
  virtual nlohmann::json config_json() const = 0;  // its sizes, as the card's "network" has them
  virtual int classes() const = 0;                 // 0 = an encoder without a head
  virtual int image_size() const = 0;              // it was made for; it may take others

  // x (B, 3, H, W) normalized -> logits (B, C). Without a head: the features that a head would read.
  virtual Tensor forward(const Tensor& x, Taps* taps = nullptr) = 0;
  virtual std::vector<std::string> tap_names() const = 0;
  virtual std::vector<std::string> default_levels()
      const = 0;                            // taps that an explainer sees unless told, finest first
  virtual Tensor head_weights() const = 0;  // (C, D); undefined without a head
  // Empty where inputs of this side can be taken, else what is expected of them.
  virtual std::string size_refusal(int side) const { return ""; }

  // Of transformers; others have none (classifier.h says what they are).
  virtual int prefix_tokens() const { return 0; }
  virtual Tensor patch_subset_logits(const Tensor& x, const Tensor& patches);
  virtual Tensor read_out(const Tensor& tokens);
  virtual Tensor attention_gradient(int block, const Tensor& normed, const Tensor& stream);
  using BlockVisitor = std::function<void(int block, const Tensor& relevance, const Tensor& gradient)>;
  virtual void visit_attention_relevance(const Tensor& x, int64_t wanted, int first_block,
                                         const BlockVisitor& visitor);  // of one image
  // Of ConvNets that offer the tap "features".
  virtual Tensor logits_from_features(const Tensor& features);
  // As Classifier's. Undefined where a linear head reads the pooled features themselves.
  virtual Tensor head_direction(const Tensor& read, const Tensor& weights) { return {}; }

  // Filled from a file, frozen, in eval mode, in the memory order it runs fastest in.
  virtual void load_weights(TensorTable table);
  // Random weights to learn from; the same seed gives the same numbers. start: "normal", or a way of the
  // family's own.
  virtual void initialize_from(uint64_t seed, const std::string& start);
  virtual void initialize(uint64_t seed) = 0;
  virtual void set_layer_scale(double scale) {}  // where residual branches begin, in families that may choose
  // Of the GEMMs while it learns on the CPU; nothing = on libtorch.
  virtual void set_precision(std::optional<Precision> precision) {}
  // Nothing where no engine fits these sizes.
  virtual std::unique_ptr<Engine> make_engine(const InputSpec& input, Precision precision) { return nullptr; }
};

}  // namespace aha
