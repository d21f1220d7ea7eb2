// Images with labels, by index.
//
//   cifar10[:SPLIT]         sample (in the tree), train or test (data/cifar10.h)
//   folder:DIR              one sub-folder per class, labels in sorted order of their names (torchvision's
//                           ImageFolder); a target's classes are found by the names (networks/class_names.h)
//   list:FILE.csv           lines `path,label`, paths relative to the file; a first line that begins with
//   `path`
//                           names the columns: path, label, mask, x0, y0, x1, y1 (docs/file_formats.md)
//   imagenet:DIR[:SPLIT]    DIR/SPLIT/nXXXXXXXX/*.JPEG, split train or val (default val); labels are those of
//                           ImageNet-1k whichever folders are there
//   imagenet-seg:FILE.mat   the ImageNet segmentation benchmark (data/imagenet_seg.h)
//
// A data set is cheap to make (it lists, it does not decode) and image() may be called from several threads
// at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/image/box.h"
#include "aha/image/image.h"

namespace aha {

// Where the object is, in pixels of the image.
struct Annotation {
  Image mask;              // of the image's size, 0 = background; without pixels = not known
  std::vector<Box> boxes;  // empty = not known
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::string name() const = 0;
  virtual int64_t size() const = 0;
  virtual Image image(int64_t index) const = 0;
  virtual int label(int64_t index) const = 0;                          // -1 = unknown
  virtual std::string id(int64_t index) const = 0;                     // a path, or "cifar10/test/17"
  virtual std::vector<std::string> class_names() const { return {}; }  // empty = the target's own names
  virtual bool annotated() const { return false; }  // whether any image has a mask or a box
  virtual Annotation annotation(int64_t index) const { return {}; }
};

std::unique_ptr<Dataset> open_dataset(const std::string& spec);

// The examples skip, skip + every, skip + 2 every, ... of another data set, `limit` of them at most. Lists
// are often sorted by class: their first examples are few classes, every n-th are all.
struct SliceOptions {
  int64_t skip = 0, every = 1, limit = 0;  // limit 0 = all
};
Fields fields(SliceOptions& options);
std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> whole, const SliceOptions& options);

// The same images; their label k is classes[k]. The other data set outlives it.
std::unique_ptr<Dataset> relabeled(const Dataset& data, std::vector<int> classes);

// Files as they are; folders become the images in them, sorted, sub-folders too. Image = an extension
// torchvision accepts and this program decodes.
std::vector<std::string> image_files(const std::vector<std::string>& files_and_folders);

}  // namespace aha
