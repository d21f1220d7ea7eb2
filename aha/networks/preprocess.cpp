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

const json& member(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw input_error("{}: expected the key \"{}\"", where, key);
  return *found;
}

int side_from_json(const json& value, const std::string& where) {
  if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > kLargestSide)
    throw input_error("{}: expected a side in 1..{} pixels, found {}", where, kLargestSide,
                      printable(value.dump()));
  return value.get<int>();
}

std::string text_from_json(const json& value, const std::string& where) {
  if (!value.is_string()) throw input_error("{}: expected text, found {}", where, printable(value.dump()));
  return value.get<std::string>();
}

bool bool_from_json(const json& value, const std::string& where) {
  if (!value.is_boolean())
    throw input_error("{}: expected true or false, found {}", where, printable(value.dump()));
  return value.get<bool>();
}

double number_from_json(const json& value, const std::string& where) {
  if (!value.is_number())
    throw input_error("{}: expected a number, found {}", where, printable(value.dump()));
  return value.get<double>();
}

std::array<double, 3> triple_from_json(const json& value, const std::string& where) {
  if (!value.is_array() || value.size() != 3)
    throw input_error("{}: expected three numbers, found {}", where, printable(value.dump()));
  std::array<double, 3> triple;
  for (int i = 0; i < 3; ++i) {
    triple[i] = number_from_json(value[i], where);
    if (!std::isfinite(triple[i]))
      throw input_error("{}: expected finite numbers, found {}", where, printable(value.dump()));
  }
  return triple;
}

void check_std(const InputSpec& input, const std::string& where) {
  for (const double s : input.std)
    if (!(s > 0)) throw input_error("{}: std: expected numbers above 0, found {}", where, s);
}

Filter filter_from_name(const std::string& name, const std::string& where) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "bilinear" || name == "random") return Filter::kBilinear;  // timm's "random" means: any will do
  if (name == "bicubic") return Filter::kBicubic;
  throw input_error("{}: unknown filter '{}'; available: nearest, bilinear, bicubic", where, printable(name));
}

std::string name_of(Filter filter) {
  return filter == Filter::kNearest ? "nearest" : filter == Filter::kBilinear ? "bilinear" : "bicubic";
}

ResizeRule rule_from_name(const std::string& name, const std::string& where) {
  if (name == "short_side") return ResizeRule::kShortSide;
  if (name == "stretch") return ResizeRule::kStretch;
  if (name == "none") return ResizeRule::kNone;
  throw input_error("{}: unknown resize rule '{}'; available: short_side, stretch, none", where,
                    printable(name));
}

std::string name_of(ResizeRule rule) {
  return rule == ResizeRule::kShortSide ? "short_side" : rule == ResizeRule::kStretch ? "stretch" : "none";
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
    p.input.rule = rule_from_name(text_from_json(member(resize, "mode", where), where), where);
    if (p.input.rule != ResizeRule::kNone)
      p.input.resize = side_from_json(member(resize, "size", where), where + ": resize.size");
  }
  if (j.contains("crop")) {
    const auto crop = text_from_json(j["crop"], where + ": crop");
    if (crop != "center" && crop != "none")
      throw input_error("{}: crop: expected center or none, found '{}'", where, printable(crop));
    p.input.crop = crop == "center";
  }
  if (j.contains("interpolation"))
    p.input.filter = filter_from_name(text_from_json(j["interpolation"], where), where);
  if (j.contains("antialias") && !bool_from_json(j["antialias"], where + ": antialias"))
    throw input_error("{}: antialias: expected true, found false; resizing is always antialiased here",
                      where);
  if (j.contains("channel_order") && j["channel_order"] != "RGB")
    throw input_error("{}: channel_order: expected RGB, found {}", where,
                      printable(j["channel_order"].dump()));
  if (j.contains("mean")) p.input.mean = triple_from_json(j["mean"], where + ": mean");
  if (j.contains("std")) p.input.std = triple_from_json(j["std"], where + ": std");
  if (j.contains("range")) {
    const auto& range = j["range"];
    if (!range.is_array() || range.size() != 2)
      throw input_error("{}: range: expected two numbers, found {}", where, printable(range.dump()));
    const double low = number_from_json(range[0], where), high = number_from_json(range[1], where);
    if (!(high > low))
      throw input_error("{}: range: expected low < high, found {}", where, printable(range.dump()));
    // ((low + (high - low) x) - mean) / std, written as a mean and a std of x in [0, 1].
    for (int c = 0; c < 3; ++c) {
      p.input.mean[c] = (p.input.mean[c] - low) / (high - low);
      p.input.std[c] /= high - low;
    }
  }
  if (j.contains("output")) {
    p.output = text_from_json(j["output"], where + ": output");
    if (p.output != "logits" && p.output != "probabilities")
      throw input_error("{}: output: expected logits or probabilities, found '{}'", where,
                        printable(p.output));
  }
  if (j.contains("num_classes"))
    p.classes = static_cast<int>(number_from_json(j["num_classes"], where + ": num_classes"));
  if (j.contains("labels")) {
    if (j["labels"] == "imagenet1k") {
      p.class_names = imagenet_class_names();
    } else if (j["labels"].is_array()) {
      for (const auto& label : j["labels"])
        p.class_names.push_back(text_from_json(label, where + ": labels"));
    } else {
      throw input_error("{}: labels: expected \"imagenet1k\" or a list of names, found {}", where,
                        printable(j["labels"].dump()));
    }
  }
  return p;
}

Preprocessing preprocessing_from_timm(const json& whole, const std::string& where) {
  const auto& j = whole.contains("pretrained_cfg") ? whole["pretrained_cfg"] : whole;
  Preprocessing p;
  p.input.size = square_side(member(j, "input_size", where), where);
  const double crop_pct =
      j.contains("crop_pct") ? number_from_json(j["crop_pct"], where + ": crop_pct") : 0.875;
  if (!(crop_pct > 0.05) || crop_pct > 1)
    throw input_error("{}: crop_pct: expected 0.05..1, found {}", where, crop_pct);
  const auto mode =
      j.contains("crop_mode") ? text_from_json(j["crop_mode"], where + ": crop_mode") : "center";
  if (mode != "center" && mode != "squash")
    throw input_error("{}: crop_mode: expected center or squash, found '{}'", where, printable(mode));
  p.input.rule = mode == "squash" ? ResizeRule::kStretch : ResizeRule::kShortSide;
  p.input.resize = static_cast<int>(std::floor(p.input.size / crop_pct));
  p.input.crop = true;
  p.input.filter = j.contains("interpolation")
                       ? filter_from_name(text_from_json(j["interpolation"], where), where)
                       : Filter::kBicubic;
  if (j.contains("mean")) p.input.mean = triple_from_json(j["mean"], where + ": mean");
  if (j.contains("std")) p.input.std = triple_from_json(j["std"], where + ": std");
  if (whole.contains("num_classes"))
    p.classes = static_cast<int>(number_from_json(whole["num_classes"], where + ": num_classes"));
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
  const bool crops =
      j.contains("do_center_crop") && bool_from_json(j["do_center_crop"], where + ": do_center_crop");
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
  if (j.contains("do_resize") && !bool_from_json(j["do_resize"], where + ": do_resize"))
    p.input.rule = ResizeRule::kNone;
  const int resample =
      j.contains("resample") ? static_cast<int>(number_from_json(j["resample"], where + ": resample")) : 2;
  if (resample != 0 && resample != 2 && resample != 3)
    throw input_error("{}: resample: expected 0 (nearest), 2 (bilinear) or 3 (bicubic), found {}", where,
                      resample);
  p.input.filter = resample == 0 ? Filter::kNearest : resample == 2 ? Filter::kBilinear : Filter::kBicubic;
  if (j.contains("do_normalize") && !bool_from_json(j["do_normalize"], where + ": do_normalize")) {
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

Preprocessing preprocessing_from_json(const json& j, const std::string& where) {
  if (!j.is_object()) throw input_error("{}: expected a JSON object, found {}", where, printable(j.dump()));
  const bool is_timm = j.contains("pretrained_cfg") || (j.contains("crop_pct") && j.contains("input_size"));
  const bool is_huggingface =
      j.contains("image_mean") || j.contains("image_processor_type") || j.contains("feature_extractor_type");
  const auto p = is_timm          ? preprocessing_from_timm(j, where)
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
  check_json_keys(j, {"size", "resize", "crop", "filter", "mean", "std"}, where);
  InputSpec input;
  input.size = side_from_json(member(j, "size", where), where + ": size");
  const auto& resize = member(j, "resize", where);
  check_json_keys(resize, {"rule", "size"}, where + ": resize");
  input.rule = rule_from_name(text_from_json(member(resize, "rule", where), where), where + ": resize.rule");
  input.resize =
      resize.contains("size") ? side_from_json(resize["size"], where + ": resize.size") : input.size;
  input.crop = bool_from_json(member(j, "crop", where), where + ": crop");
  input.filter = filter_from_name(text_from_json(member(j, "filter", where), where), where + ": filter");
  input.mean = triple_from_json(member(j, "mean", where), where + ": mean");
  input.std = triple_from_json(member(j, "std", where), where + ": std");
  check_std(input, where);
  return input;
}

nlohmann::ordered_json card_json_from_input(const InputSpec& input) {
  nlohmann::ordered_json j;
  j["size"] = input.size;
  j["resize"]["rule"] = name_of(input.rule);
  if (input.rule != ResizeRule::kNone) j["resize"]["size"] = input.resize;
  j["crop"] = input.crop;
  j["filter"] = name_of(input.filter);
  j["mean"] = input.mean;
  j["std"] = input.std;
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
  return text + fmt::format(", mean {}, std {}", triple(input.mean), triple(input.std));
}

}  // namespace aha
