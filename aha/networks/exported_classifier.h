// A classifier that comes as a file with its own graph: TorchScript (torchscript.h) or ONNX (onnx.h).
//
// What such a file leaves open is found by asking it about synthetic images when it is loaded:
//   two forwards must agree (a network exported in training mode has its dropout baked in and is refused);
//   a batch of two must give the rows of two single images, otherwise images are run one by one;
//   rows that sum to one are probabilities: their logarithm is returned, whose softmax gives them back.
#pragma once

#include "aha/networks/classifier.h"
#include "aha/networks/preprocess.h"

namespace aha {

class ExportedClassifier : public Classifier {
 public:
  Tensor logits(const Tensor& pixels, Taps* taps) override;

 protected:
  // Sets info_ and asks the questions; of the constructor of whoever derives from this.
  void probe(ClassifierInfo info, const Preprocessing& preprocessing, at::Device device);

  // x (B, 3, H, W) normalized -> what the file gives for it.
  virtual Tensor output(const Tensor& x, Taps* taps) = 0;
  // What the file gives -> logits.
  Tensor logits_from_output(const Tensor& output) const;

 private:
  Tensor raw(const Tensor& pixels, Taps* taps);

  bool probabilities_ = false, batched_ = true;
};

// The preprocessing from FILE.preprocess.json, or from preprocess.json, preprocessor_config.json (Hugging
// Face) or config.json (timm) in the same folder; nothing where none of them is there.
std::optional<Preprocessing> preprocessing_beside(const std::string& path);

// Smooth, colored, different for each image of the batch.
Tensor probe_pixels(int64_t B, int size, at::Device device);

}  // namespace aha
