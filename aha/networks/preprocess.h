// How an image becomes a network's input, as JSON: the `input` of a model card, and the files that come with
// public models.
//
// Three dialects of preprocessing file are read and told apart by their keys:
//   ours (<model>.preprocess.json, or preprocess.json inside a TorchScript archive), timm's config.json
//   (pretrained_cfg), Hugging Face's preprocessor_config.json.
#pragma once

#include <nlohmann/json.hpp>

#include "aha/base/error.h"
#include "aha/networks/classifier.h"

namespace aha {

struct Preprocessing {
  InputSpec input;
  std::string output = "auto";  // logits, probabilities, or auto = told from the numbers
  int classes = 0;              // 0 = not said
  std::vector<std::string> class_names;
};

Preprocessing preprocessing_from_json(const nlohmann::json& json, const std::string& where);

// The card's form: {"size", "resize": {"rule", "size"}, "crop", "filter", "mean", "std"}, and where the
// network does not get RGB in [0, 1] "channel_order": "BGR" and "range": [0, 255]. mean and std are those of
// red, green and blue in any order of channels. Unknown keys are input errors.
InputSpec input_from_card_json(const nlohmann::json& json, const std::string& where);
nlohmann::ordered_json card_json_from_input(const InputSpec& input);

// [R, G, B], each in 0..1
std::array<double, 3> color_from_json(const nlohmann::json& json, const std::string& where);

// "short side 248 bicubic, crop 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5"
std::string text_from_input(const InputSpec& input);

// JSON of a file; a syntax error names file and place.
nlohmann::json read_json(const std::string& path);
nlohmann::json json_from_text(const std::string& text, const std::string& where);

// A text, a truth value or a number; input error for another type.
template <class T>
T value_from_json(const nlohmann::json& value, const std::string& where) {
  constexpr bool kText = std::is_same_v<T, std::string>, kTruth = std::is_same_v<T, bool>;
  if (kText ? !value.is_string() : kTruth ? !value.is_boolean() : !value.is_number())
    throw input_error("{}: expected {}, found {}", where,
                      kText    ? "text"
                      : kTruth ? "true or false"
                               : "a number",
                      printable(value.dump()));
  return value.get<T>();
}

// What an object has under a key: it must be there, be there and of a type, or be of a type where it is
// there.
const nlohmann::json& member(const nlohmann::json& object, const char* key, const std::string& where);
template <class T>
T member(const nlohmann::json& object, const char* key, const std::string& where) {
  return value_from_json<T>(member(object, key, where), fmt::format("{}: {}", where, key));
}
template <class T>
T member_or(const nlohmann::json& object, const char* key, T otherwise, const std::string& where) {
  return object.contains(key) ? member<T>(object, key, where) : otherwise;
}

std::vector<std::string> texts_from_json(const nlohmann::json& list, const std::string& where);
// A list of names, or "imagenet1k".
std::vector<std::string> class_names_from_json(const nlohmann::json& names, const std::string& where);

// Input error that names keys outside `allowed`.
void check_json_keys(const nlohmann::json& object, const std::vector<std::string>& allowed,
                     const std::string& where);

}  // namespace aha
