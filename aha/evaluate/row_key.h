// What a stored figure depends on, as one key: two rows with the same key hold the same figures, and a row is
// made again as soon as one of these facts changes:
//
//   target (architecture, sha256, classes), input (size, resize rule and filter, crop, mean, std), protocol,
//   references, seed, precision, device, version of the numerics; the image (its id and its
//   decoded pixels, which seed random numbers), its label where the true class is explained; the method with
//   all its options, the whole card of the explainer where the method uses one, and the file of a map made
//   elsewhere.
//
// A timing depends on target, input, precision, device, method and explainer too, and on the number of
// threads and the CPU. A key is the first half of a sha256 in hex digits: also a file name.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "aha/methods/method.h"

namespace aha {

// Bumped with every change of the code that moves a stored figure (maps, sweeps, preprocessing, references).
constexpr int kNumericsVersion = 4;

std::string key_from_json(const nlohmann::json& facts);

// Of the decoded pixels.
std::string content_key(const Image& image);

// What keys know of an image.
struct KeyedImage {
  std::string id, content;
  int label = -1;
  std::string annotation = {};  // of mask and boxes; empty = there are none
};

class RowKeys {
 public:
  // `settings`: the facts that all rows of an evaluation share. `card`: the explainer's; null = there is
  // none.
  RowKeys(nlohmann::json settings, const nlohmann::json& card);

  std::string row(const KeyedImage& image, const Method& method, const std::string& explained) const;
  // The same without what only the metrics look at: rows of several protocols share a kept map.
  std::string map(const KeyedImage& image, const Method& method, const std::string& explained) const;
  // Of what a metric measured; `measure` names it with its options. `annotated`: it looks at mask or boxes.
  std::string value(const KeyedImage& image, const Method& method, const std::string& explained,
                    const std::string& measure, bool annotated) const;
  std::string image(const KeyedImage& image) const;  // as the network sees it, for the report
  std::string timing(const Method& method, int threads, const std::string& cpu) const;

 private:
  std::string key(const std::string& settings, const KeyedImage& image, const Method& method,
                  const std::string& explained) const;
  std::string card_of(const Method& method) const { return method.learned() ? card_ : ""; }

  nlohmann::json settings_;
  std::string shared_, of_maps_, card_;
};

}  // namespace aha
