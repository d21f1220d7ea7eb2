#include "aha/train/readable_images.h"

#include "aha/tensor/torch.h"

#include "aha/base/error.h"
#include "aha/base/log.h"

namespace aha {

ReadableImages::ReadableImages(const Dataset& data, std::vector<int64_t> examples, bool strict)
    : data_(data), examples_(std::move(examples)), strict_(strict) {}

std::optional<LabeledImage> ReadableImages::find(int64_t place) const {
  const int64_t example = examples_[place];
  {
    const std::lock_guard lock(guard_);
    if (failures_.contains(example)) return std::nullopt;
  }
  try {
    return LabeledImage{data_.image(example), data_.label(example)};
  } catch (const Error& error) {
    if (strict_) throw;
    const std::lock_guard lock(guard_);
    if (failures_.emplace(example, error.what()).second) spdlog::error("left out: {}", error.what());
    return std::nullopt;
  }
}

LabeledImage ReadableImages::at(int64_t place) const {
  for (int64_t k = 0; k < size(); ++k)
    if (auto found = find((place + k) % size())) return std::move(*found);
  const std::lock_guard lock(guard_);
  throw input_error("{}: none of {} images can be read; the first: {}", data_.name(), size(),
                    failures_.begin()->second);
}

std::map<int64_t, std::string> ReadableImages::failures() const {
  const std::lock_guard lock(guard_);
  return failures_;
}

nlohmann::json json_from_failures(const std::vector<UnreadableImage>& images) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& one : images) out.push_back({{"image", one.image}, {"error", one.reason}});
  return out;
}

std::vector<UnreadableImage> unreadable_images(const Dataset& data,
                                               const std::map<int64_t, std::string>& found_here,
                                               WorkerGroup& group) {
  Tensor failed = torch::zeros({data.size()});
  for (const auto& [example, reason] : found_here) failed[example] = 1;
  group.sum(failed);
  std::vector<UnreadableImage> out;
  const Tensor indices = failed.nonzero().view({-1});
  for (int64_t n = 0; n < indices.size(0); ++n) {
    const auto i = indices[n].item<int64_t>();
    const auto here = found_here.find(i);
    out.push_back({data.id(i), here != found_here.end() ? here->second : "another worker could not read it"});
  }
  return out;
}

}  // namespace aha
