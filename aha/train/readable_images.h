// The images of a training run that can be read.
//
// One that cannot is named on stderr once, with its reason. Training takes the next readable image of the
// same list in its place, validation leaves it out. This depends on the files alone: a run that resumes and a
// run of several workers do the same as one that does not.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "aha/data/dataset.h"
#include "aha/train/worker_group.h"

namespace aha {

struct LabeledImage {
  Image image;
  int label = -1;
};

class ReadableImages {
 public:
  // `examples` of the data set, which outlives this. A strict one throws at the first that cannot be read.
  ReadableImages(const Dataset& data, std::vector<int64_t> examples, bool strict);

  int64_t size() const { return static_cast<int64_t>(examples_.size()); }
  int64_t example(int64_t place) const { return examples_[place]; }
  // examples[place], or the next one that can be read. Input error where none can. From several threads.
  LabeledImage at(int64_t place) const;
  std::optional<LabeledImage> find(int64_t place) const;  // nothing where it cannot be read

  std::map<int64_t, std::string> failures() const;  // by example, found so far

 private:
  const Dataset& data_;
  std::vector<int64_t> examples_;
  bool strict_;
  mutable std::mutex guard_;
  mutable std::map<int64_t, std::string> failures_;
};

// What all workers together could not read. Every worker calls it.
struct UnreadableImage {
  std::string image, reason;
};
nlohmann::json json_from_failures(const std::vector<UnreadableImage>& images);
std::vector<UnreadableImage> unreadable_images(const Dataset& data,
                                               const std::map<int64_t, std::string>& found_here,
                                               WorkerGroup& group);

}  // namespace aha
