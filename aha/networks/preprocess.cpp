#include "aha/networks/preprocess.h"

#include <algorithm>
#include <cmath>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"

namespace aha {
namespace {

using nlohmann::json;

constexpr int kLargestSide = 16384;

int side_from_json(const json& value, const std::string& where) {
  if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > kLargestSide)
    throw input_error("{}: expected a side in 1..{} pixels, found {}", where, kLargestSide,
                      printable(value.dump()));
  return value.get<int>();
}

std::array<double, 3> triple_from_json(const json& value, const std::string& where) {
  if (!value.is_array() || value.size() != 3)
    throw input_error("{}: expected three numbers, found {}", where, printable(value.dump()));
  std::array<double, 3> triple;
  for (int i = 0; i < 3; ++i) {
    triple[i] = value_from_json<double>(value[i], where);
    if (!std::isfinite(triple[i]))
      throw input_error("{}: expected finite numbers, found {}", where, printable(value.dump()));
  }
  return triple;
}

void take_normalization(const json& j, InputSpec& input, const std::string& where) {
  if (j.contains("mean")) input.mean = triple_from_json(j["mean"], where + ": mean");
  if (j.contains("std")) input.std = triple_from_json(j["std"], where + ": std");
}

void check_std(const InputSpec& input, const std::string& where) {
  for (const double s : input.std)
    if (!(s > 0)) throw input_error("{}: std: expected numbers above 0, found {}", where, s);
}

// The names of an enumeration, in its order.
const std::vector<std::string> kFilterNames = {"nearest", "bilinear", "bicubic"};
const std::vector<std::string> kOrderNames = {"RGB", "BGR"};
const std::vector<std::string> kRuleNames = {"short_side", "stretch", "none"};

template <class Enum>
Enum enum_from_name(const std::string& name, const std::vector<std::string>& names,
                    const std::string& where) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw unknown_name_error(where + ":", name, names);
  return static_cast<Enum>(found - names.begin());
}

Filter filter_from_json(const json& object, const char* key, const std::string& where) {
  const auto name = member<std::string>(object, key, where);
  // timm's "random" means: any will do
  return name == "random" ? Filter::kBilinear
                          : enum_from_name<Filter>(name, kFilterNames, where + ": " + key);
}

// What the network gets beside RGB in [0, 1]: "channel_order" RGB or BGR, "range" [low, high] of the values
// that mean and std are given for.
void take_order_and_range(const json& j, InputSpec& input, const std::string& where) {
  input.order = enum_from_name<ChannelOrder>(member_or<std::string>(j, "channel_order", "RGB", where),
                                             kOrderNames, where + ": channel_order");
  if (!j.contains("range")) return;
  const auto& range = j["range"];
  if (!range.is_array() || range.size() != 2)
    throw input_error("{}: range: expected two numbers, found {}", where, printable(range.dump()));
  const auto low = value_from_json<double>(range[0], where), high = value_from_json<double>(range[1], where);
  if (!(high > low))
    throw input_error("{}: range: expected low < high, found {}", where, printable(range.dump()));
  // ((low + (high - low) x) - mean) / std, written as a mean and a std of x in [0, 1].
  for (int c = 0; c < 3; ++c) {
    input.mean[c] = (input.mean[c] - low) / (high - low);
    input.std[c] /= high - low;
  }
}

const std::string& name_of(Filter filter) {
  return kFilterNames[static_cast<size_t>(filter)];
}

int square_side(const json& input_size, const std::string& where) {
  if (!input_size.is_array() || input_size.size() != 3 || input_size[1] != input_size[2] ||
      input_size[0] != 3)
    throw input_error("{}: input_size: expected [3, S, S], found {}", where, printable(input_size.dump()));
  return side_from_json(input_size[1], where + ": input_size");
}

Preprocessing preprocessing_from_ours(const json& j, const std::string& where) {
  check_json_keys(j,
                  {"input_size", "resize", "crop", "interpolation", "antialias", "mean", "std", "range",
                   "channel_order", "output", "num_classes", "labels"},
                  where);
  Preprocessing p;
  p.input.size = square_side(member(j, "input_size", where), where);
  p.input.rule = ResizeRule::kStretch;
  p.input.resize = p.input.size;
  p.input.crop = false;
  if (j.contains("resize")) {
    const auto& resize = j["resize"];
    check_json_keys(resize, {"mode", "size"}, where + ": resize");
    p.input.rule = enum_from_name<ResizeRule>(member<std::string>(resize, "mode", where), kRuleNames, where);
    if (p.input.rule != ResizeRule::kNone)
      p.input.resize = side_from_json(member(resize, "size", where), where + ": resize.size");
  }
  const auto crop = member_or<std::string>(j, "crop", "none", where);
  if (crop != "center" && crop != "none")
    throw input_error("{}: crop: expected center or none, found '{}'", where, printable(crop));
  p.input.crop = crop == "center";
  if (j.contains("interpolation")) p.input.filter = filter_from_json(j, "interpolation", where);
  if (!member_or(j, "antialias", true, where))
    throw input_error("{}: antialias: expected true, found false; resizing is always antialiased here",
                      where);
  take_normalization(j, p.input, where);
  take_order_and_range(j, p.input, where);
  p.output = member_or<std::string>(j, "output", p.output, where);
  if (j.contains("output") && p.output != "logits" && p.output != "probabilities")
    throw input_error("{}: output: expected logits or probabilities, found '{}'", where, printable(p.output));
  p.classes = static_cast<int>(member_or<double>(j, "num_classes", 0, where));
  if (j.contains("labels")) p.class_names = class_names_from_json(j["labels"], where + ": labels");
  return p;
}

Preprocessing preprocessing_from_timm(const json& whole, const std::string& where) {
  const auto& j = whole.contains("pretrained_cfg") ? whole["pretrained_cfg"] : whole;
  Preprocessing p;
  p.input.size = square_side(member(j, "input_size", where), where);
  const auto crop_pct = member_or<double>(j, "crop_pct", 0.875, where);
  if (!(crop_pct > 0.05) || crop_pct > 1)
    throw input_error("{}: crop_pct: expected 0.05..1, found {}", where, crop_pct);
  const auto mode = member_or<std::string>(j, "crop_mode", "center", where);
  if (mode != "center" && mode != "squash")
    throw input_error("{}: crop_mode: expected center or squash, found '{}'", where, printable(mode));
  p.input.rule = mode == "squash" ? ResizeRule::kStretch : ResizeRule::kShortSide;
  p.input.resize = static_cast<int>(std::floor(p.input.size / crop_pct));
  p.input.crop = true;
  p.input.filter =
      j.contains("interpolation") ? filter_from_json(j, "interpolation", where) : Filter::kBicubic;
  take_normalization(j, p.input, where);
  p.classes = static_cast<int>(member_or<double>(whole, "num_classes", 0, where));
  return p;
}

// A side as Hugging Face writes it: 224, {"height": 224, "width": 224} or {"shortest_edge": 224}.
int huggingface_side(const json& size, const std::string& where) {
  if (size.is_number_integer()) return side_from_json(size, where);
  if (size.is_object() && size.contains("shortest_edge")) return side_from_json(size["shortest_edge"], where);
  if (size.is_object() && size.contains("height") && size.contains("width") &&
      size["height"] == size["width"])
    return side_from_json(size["height"], where);
  throw input_error("{}: expected a side, a square or a shortest edge, found {}", where,
                    printable(size.dump()));
}

Preprocessing preprocessing_from_huggingface(const json& j, const std::string& where) {
  Preprocessing p;
  const auto& size = member(j, "size", where);
  const int side = huggingface_side(size, where + ": size");
  const bool crops = member_or(j, "do_center_crop", false, where);
  p.input.crop = crops;
  p.input.size =
      crops && j.contains("crop_size") ? huggingface_side(j["crop_size"], where + ": crop_size") : side;
  p.input.resize = side;
  const bool keeps_aspect = size.is_object() ? size.contains("shortest_edge") : crops;
  p.input.rule = keeps_aspect ? ResizeRule::kShortSide : ResizeRule::kStretch;
  if (j.contains("crop_pct") && j["crop_pct"].is_number()) {
    // ConvNeXt's processor: below 384 the short side goes to size / crop_pct and is cropped, from 384 on the
    // image is stretched.
    const double crop_pct = j["crop_pct"].get<double>();
    if (!(crop_pct > 0.05) || crop_pct > 1)
      throw input_error("{}: crop_pct: expected 0.05..1, found {}", where, crop_pct);
    p.input.size = side;
    p.input.crop = side < 384;
    p.input.rule = side < 384 ? ResizeRule::kShortSide : ResizeRule::kStretch;
    p.input.resize = side < 384 ? static_cast<int>(side / crop_pct) : side;
  }
  if (!member_or(j, "do_resize", true, where)) p.input.rule = ResizeRule::kNone;
  const int resample = static_cast<int>(member_or<double>(j, "resample", 2, where));
  if (resample != 0 && resample != 2 && resample != 3)
    throw input_error("{}: resample: expected 0 (nearest), 2 (bilinear) or 3 (bicubic), found {}", where,
                      resample);
  p.input.filter = resample == 0 ? Filter::kNearest : resample == 2 ? Filter::kBilinear : Filter::kBicubic;
  if (!member_or(j, "do_normalize", true, where)) {
    p.input.mean = {0, 0, 0};
    p.input.std = {1, 1, 1};
  } else {
    p.input.mean = triple_from_json(member(j, "image_mean", where), where + ": image_mean");
    p.input.std = triple_from_json(member(j, "image_std", where), where + ": image_std");
  }
  return p;
}

}  // namespace

json json_from_text(const std::string& text, const std::string& where) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw input_error("{}: not valid JSON: {}", where, printable(error.what(), 160));
  }
}

json read_json(const std::string& path) {
  return json_from_text(read_file(path, 16 << 20), path);
}

void check_json_keys(const json& object, const std::vector<std::string>& allowed, const std::string& where) {
  if (!object.is_object())
    throw input_error("{}: expected a JSON object, found {}", where, printable(object.dump()));
  for (const auto& item : object.items())
    if (std::find(allowed.begin(), allowed.end(), item.key()) == allowed.end())
      throw unknown_name_error(where + ": key", item.key(), allowed);
}

const json& member(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw input_error("{}: expected the key \"{}\"", where, key);
  return *found;
}

std::vector<std::string> texts_from_json(const json& value, const std::string& where) {
  if (!value.is_array())
    throw input_error("{}: expected a list of names, found {}", where, printable(value.dump()));
  std::vector<std::string> texts;
  for (const auto& item : value) texts.push_back(value_from_json<std::string>(item, where));
  return texts;
}

std::vector<std::string> class_names_from_json(const json& value, const std::string& where) {
  return value == "imagenet1k" ? imagenet_class_names() : texts_from_json(value, where);
}

Preprocessing preprocessing_from_json(const json& j, const std::string& where) {
  if (!j.is_object()) throw input_error("{}: expected a JSON object, found {}", where, printable(j.dump()));
  const bool is_timm = j.contains("pretrained_cfg") || (j.contains("crop_pct") && j.contains("input_size"));
  const bool is_huggingface =
      j.contains("image_mean") || j.contains("image_processor_type") || j.contains("feature_extractor_type");
  auto p = is_timm          ? preprocessing_from_timm(j, where)
           : is_huggingface ? preprocessing_from_huggingface(j, where)
                            : preprocessing_from_ours(j, where);
  check_std(p.input, where);
  return p;
}

std::array<double, 3> color_from_json(const json& value, const std::string& where) {
  const auto color = triple_from_json(value, where);
  for (const double part : color)
    if (part < 0 || part > 1) throw input_error("{}: expected numbers in 0..1, found {}", where, part);
  return color;
}

InputSpec input_from_card_json(const json& j, const std::string& where) {
  check_json_keys(j, {"size", "resize", "crop", "filter", "mean", "std", "channel_order", "range"}, where);
  InputSpec input;
  input.size = side_from_json(member(j, "size", where), where + ": size");
  const auto& resize = member(j, "resize", where);
  check_json_keys(resize, {"rule", "size"}, where + ": resize");
  input.rule = enum_from_name<ResizeRule>(member<std::string>(resize, "rule", where), kRuleNames,
                                          where + ": resize.rule");
  input.resize =
      resize.contains("size") ? side_from_json(resize["size"], where + ": resize.size") : input.size;
  input.crop = member<bool>(j, "crop", where);
  input.filter = filter_from_json(j, "filter", where);
  input.mean = triple_from_json(member(j, "mean", where), where + ": mean");
  input.std = triple_from_json(member(j, "std", where), where + ": std");
  take_order_and_range(j, input, where);
  check_std(input, where);
  return input;
}

nlohmann::ordered_json card_json_from_input(const InputSpec& input) {
  nlohmann::ordered_json j;
  j["size"] = input.size;
  j["resize"]["rule"] = kRuleNames[static_cast<size_t>(input.rule)];
  if (input.rule != ResizeRule::kNone) j["resize"]["size"] = input.resize;
  j["crop"] = input.crop;
  j["filter"] = name_of(input.filter);
  j["mean"] = input.mean;
  j["std"] = input.std;
  if (input.order != ChannelOrder::kRgb) j["channel_order"] = kOrderNames[static_cast<size_t>(input.order)];
  return j;
}

std::string text_from_input(const InputSpec& input) {
  std::string text;
  if (input.rule == ResizeRule::kShortSide)
    text = fmt::format("short side {} {}, ", input.resize, name_of(input.filter));
  if (input.rule == ResizeRule::kStretch)
    text = fmt::format("both sides {} {}, ", input.resize, name_of(input.filter));
  text += fmt::format("{} {}", input.crop ? "crop" : "size", input.size);
  const auto triple = [](const std::array<double, 3>& t) {
    return fmt::format("{:.4g} {:.4g} {:.4g}", t[0], t[1], t[2]);
  };
  return text + fmt::format(", mean {}, std {}{}", triple(input.mean), triple(input.std),
                            input.order == ChannelOrder::kBgr ? ", BGR" : "");
}

}  // namespace aha
