// The verb behind `aha fit`: trains or fine-tunes a classifier on a data set and leaves a model directory.
//
//   loss = (1 - a) CE(logits, label, smoothing) + a T^2 KL(softmax(teacher / T) || softmax(logits / T)) a = 0
//   without a teacher
//
// Some training images are held out (the same ones for every run) and choose the best weights; the test set
// is looked at once, at the end.
#pragma once

#include <optional>

#include "aha/base/context.h"
#include "aha/data/augment.h"
#include "aha/data/dataset.h"
#include "aha/train/readable_images.h"
#include "aha/train/trainer.h"

namespace aha {

struct FitOptions {
  std::string arch = "convnext_mini";  // a known architecture
  std::string network;                 // changes to its sizes, "widths=48,96,192:depths=2,2,2"
  std::string
      init;  // a model to fine-tune; its matching weights are taken, a head of another size begins anew
  std::string data = "cifar10:train";
  std::string test;  // empty = cifar10:test for cifar10:train, else none
  SliceOptions slice;
  int64_t holdout = 5000;  // at most a fifth of the data
  std::vector<double> mean,
      std;  // of the input; empty = CIFAR-10's own for its images, ImageNet's for others
  double label_smoothing = 0.1;
  double layer_scale =
      1;  // ConvNeXt: where the residual branches begin; 1e-6 is for networks of dozens of blocks
  std::string start = "normal";    // ViT: normal, or mimetic attention
  std::string teacher;             // a classifier with the same classes to learn from
  double teacher_share = 0.7;      // a
  double teacher_temperature = 2;  // T
  AugmentOptions augment;
  TrainOptions train;
};
Fields fields(FitOptions& options);

struct FitReport {
  TrainReport train;
  int64_t parameters = 0, train_images = 0, held_out_images = 0;
  double held_out_accuracy = 0;  // of the weights that were kept
  int64_t test_images = 0;       // 0 = no test set
  double test_accuracy = 0;
  std::string directory;
  int64_t images = 0;  // of the data set
  std::vector<UnreadableImage> unreadable;
};

// Several workers: starts them and waits for them, or is one of them. Nothing is returned where another
// process has the report.
std::optional<FitReport> fit_classifier(const FitOptions& options, const Context& context);

// The same as a member of a group: every worker calls it; the leader writes. context.batch_size is the global
// batch, 0 = 128.
FitReport fit(const FitOptions& options, WorkerGroup& group, const Context& context);

}  // namespace aha
