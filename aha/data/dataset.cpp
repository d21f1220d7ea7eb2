#include "aha/data/dataset.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"
#include "aha/data/cifar10.h"
#include "aha/data/imagenet_seg.h"
#include "aha/image/read.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  static constexpr std::array<std::string_view, 9> kExtensions = {".jpg", ".jpeg", ".png",  ".webp", ".gif",
                                                                  ".tif", ".tiff", ".avif", ".bmp"};
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

std::vector<std::string> images_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, code), end;
       it != end && !code; it.increment(code))
    if (it->is_regular_file(code) && is_image(it->path())) files.push_back(it->path().string());
  if (code) throw input_error("{}: cannot list: {}", printable(folder, 300), code.message());
  std::sort(files.begin(), files.end());
  return files;
}

// 0 = background. A trimap of the Oxford pets (1 object, 2 background, 3 edge, nothing else) is told by
// having no 0; its edges count as object.
Image object_mask(Image mask) {
  const bool trimap =
      std::all_of(mask.rgb.begin(), mask.rgb.end(), [](uint8_t v) { return v >= 1 && v <= 3; });
  if (trimap)
    for (uint8_t& value : mask.rgb) value = value != 2;
  return mask;
}

class FileDataset : public Dataset {
 public:
  struct Entry {
    std::string path;
    int label = -1;
    std::string mask = {};
    std::vector<Box> boxes = {};
  };
  FileDataset(std::string name, std::vector<Entry> entries, std::vector<std::string> class_names = {})
      : name_(std::move(name)), entries_(std::move(entries)), class_names_(std::move(class_names)) {}

  std::string name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  Image image(int64_t index) const override { return read_image(entries_.at(index).path); }
  int label(int64_t index) const override { return entries_.at(index).label; }
  std::string id(int64_t index) const override { return entries_.at(index).path; }
  std::vector<std::string> class_names() const override { return class_names_; }
  bool annotated() const override {
    return std::any_of(entries_.begin(), entries_.end(),
                       [](const Entry& one) { return !one.mask.empty() || !one.boxes.empty(); });
  }
  Annotation annotation(int64_t index) const override {
    const Entry& one = entries_.at(index);
    return {one.mask.empty() ? Image() : object_mask(read_image(one.mask)), one.boxes};
  }

 private:
  std::string name_;
  std::vector<Entry> entries_;
  std::vector<std::string> class_names_;
};

std::vector<std::string> sub_folders(const std::string& folder) {
  if (!fs::is_directory(folder))
    throw input_error("{}: expected a folder with one sub-folder per class", printable(folder, 300));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  if (names.empty())
    throw input_error(
        "{}: expected one sub-folder per class, found none; where labels are not asked for, one around all "
        "images will do",
        printable(folder, 300));
  return names;
}

// names[i] is a folder of images with labels[i].
std::unique_ptr<Dataset> labeled_folders(const std::string& spec, const std::string& folder,
                                         const std::vector<std::string>& names,
                                         const std::vector<int>& labels,
                                         std::vector<std::string> class_names) {
  std::vector<FileDataset::Entry> entries;
  for (size_t i = 0; i < names.size(); ++i)
    for (auto& path : images_below(folder + "/" + names[i]))
      entries.push_back({std::move(path), labels[i], {}, {}});
  if (entries.empty())
    throw input_error("{}: expected JPEG, PNG or WebP images, found none", printable(folder, 300));
  return std::make_unique<FileDataset>(spec, std::move(entries), std::move(class_names));
}

std::unique_ptr<Dataset> open_folder(const std::string& spec, const std::string& folder) {
  const auto names = sub_folders(folder);
  std::vector<int> ranks(names.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return labeled_folders(spec, folder, names, ranks, names);
}

std::unique_ptr<Dataset> open_imagenet(const std::string& spec, const std::string& folder) {
  const auto names = sub_folders(folder);
  std::vector<int> labels;
  for (const auto& name : names) {
    const auto index = imagenet_class_of(name);
    if (!index)
      throw input_error(
          "{}: expected folders named by the WordNet ids of ImageNet-1k (n01440764, ...), found '{}'; "
          "folder:{} takes any names and numbers them in order",
          printable(folder, 300), printable(name), printable(folder, 300));
    labels.push_back(*index);
  }
  return labeled_folders(spec, folder, names, labels, imagenet_class_names());
}

// The columns of a list, the path first.
const std::vector<std::string>& list_columns() {
  static const std::vector<std::string> names = {"path", "label", "mask", "x0", "y0", "x1", "y1"};
  return names;
}

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of UTF-8, as spreadsheets write it

// From the right: a path may hold commas.
std::vector<std::string> fields_of_line(std::string_view line, size_t columns) {
  std::vector<std::string> out(columns);
  for (size_t c = columns; c-- > 1;) {
    const size_t comma = line.rfind(',');
    if (comma == std::string_view::npos) return {};
    out[c] = line.substr(comma + 1);
    line = line.substr(0, comma);
  }
  out[0] = line;
  return out;
}

template <class Number>
bool is_number(const std::string& text, Number& value) {
  const auto [at, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && at == text.data() + text.size();
}

// One line of a list; false where it is not what the columns say. No mask and no box are empty fields.
bool read_line(std::string_view line, const std::vector<std::string>& columns, FileDataset::Entry& entry) {
  const auto fields = fields_of_line(line, columns.size());
  if (fields.empty() || fields[0].empty()) return false;
  entry.path = fields[0];
  std::array<double, 4> box{};
  int sides = 0;
  for (size_t c = 1; c < columns.size(); ++c) {
    const std::string &name = columns[c], &text = fields[c];
    if (name == "mask") {
      entry.mask = text;
    } else if (name == "label") {
      if (!is_number(text, entry.label) || entry.label < 0) return false;
    } else if (!text.empty()) {
      const size_t side = name == "x0" ? 0 : name == "y0" ? 1 : name == "x1" ? 2 : 3;
      if (!is_number(text, box[side]) || !std::isfinite(box[side])) return false;
      ++sides;
    }
  }
  if (sides > 0) entry.boxes.push_back({box[0], box[1], box[2], box[3]});
  return sides == 0 || (sides == 4 && box[0] < box[2] && box[1] < box[3]);
}

std::vector<std::string> columns_of_list(std::string_view header, const std::string& file) {
  std::vector<std::string> columns;
  std::istringstream words{std::string(header)};
  for (std::string word; std::getline(words, word, ',');) {
    if (std::find(list_columns().begin(), list_columns().end(), word) == list_columns().end())
      throw unknown_name_error(printable(file, 300) + ": column", word, list_columns());
    if (std::find(columns.begin(), columns.end(), word) != columns.end())
      throw input_error("{}: expected every column once, found {} twice", printable(file, 300), word);
    columns.push_back(word);
  }
  const auto sides = std::count_if(columns.begin(), columns.end(), [](const std::string& c) {
    return c == "x0" || c == "y0" || c == "x1" || c == "y1";
  });
  if (sides != 0 && sides != 4)
    throw input_error("{}: expected all of the columns x0,y0,x1,y1 or none, found {}", printable(file, 300),
                      printable(header));
  return columns;
}

std::unique_ptr<Dataset> open_list(const std::string& spec, const std::string& file) {
  std::istringstream lines(read_file(file, uint64_t{1} << 30));
  const fs::path base = fs::path(file).parent_path();
  std::vector<FileDataset::Entry> entries;
  std::vector<std::string> columns = {"path", "label"};
  std::map<std::string, size_t> by_path;  // of lists with boxes: one line for each
  size_t line_number = 0;
  for (std::string text; std::getline(lines, text);) {
    std::string_view line(text);
    ++line_number;
    if (line_number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line_number == 1 && (line == "path" || line.starts_with("path,"))) {
      columns = columns_of_list(line, file);
      continue;
    }
    if (line.empty()) continue;
    FileDataset::Entry entry;
    if (!read_line(line, columns, entry))
      throw input_error("{}:{}: expected {}, found '{}'", printable(file, 300), line_number,
                        fmt::join(columns, ","), printable(line));
    entry.path = (base / entry.path).string();
    if (!entry.mask.empty()) entry.mask = (base / entry.mask).string();
    if (!entry.boxes.empty()) {
      const auto [known, is_new] = by_path.emplace(entry.path, entries.size());
      if (!is_new) {
        FileDataset::Entry& first = entries[known->second];
        if (first.label != entry.label || first.mask != entry.mask)
          throw input_error("{}:{}: expected the label and the mask that {} had before, found others",
                            printable(file, 300), line_number, printable(entry.path, 300));
        first.boxes.push_back(entry.boxes[0]);
        continue;
      }
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty())
    throw input_error("{}: expected lines {}, found none", printable(file, 300), fmt::join(columns, ","));
  return std::make_unique<FileDataset>(spec, std::move(entries));
}

class SlicedDataset : public Dataset {
 public:
  SlicedDataset(std::unique_ptr<Dataset> whole, int64_t skip, int64_t every, int64_t count)
      : whole_(std::move(whole)), skip_(skip), every_(every), count_(count) {}
  std::string name() const override { return whole_->name(); }
  int64_t size() const override { return count_; }
  Image image(int64_t index) const override { return whole_->image(at(index)); }
  int label(int64_t index) const override { return whole_->label(at(index)); }
  std::string id(int64_t index) const override { return whole_->id(at(index)); }
  std::vector<std::string> class_names() const override { return whole_->class_names(); }
  bool annotated() const override { return whole_->annotated(); }
  Annotation annotation(int64_t index) const override { return whole_->annotation(at(index)); }

 private:
  int64_t at(int64_t index) const { return skip_ + every_ * index; }

  std::unique_ptr<Dataset> whole_;
  int64_t skip_, every_, count_;
};

class RelabeledDataset : public Dataset {
 public:
  RelabeledDataset(const Dataset& data, std::vector<int> classes)
      : data_(data), classes_(std::move(classes)) {}
  std::string name() const override { return data_.name(); }
  int64_t size() const override { return data_.size(); }
  Image image(int64_t index) const override { return data_.image(index); }
  int label(int64_t index) const override {
    const int label = data_.label(index);
    return label < 0 ? label : classes_.at(static_cast<size_t>(label));
  }
  std::string id(int64_t index) const override { return data_.id(index); }
  bool annotated() const override { return data_.annotated(); }
  Annotation annotation(int64_t index) const override { return data_.annotation(index); }

 private:
  const Dataset& data_;
  std::vector<int> classes_;
};

}  // namespace

std::unique_ptr<Dataset> open_dataset(const std::string& spec) {
  const size_t colon = spec.find(':');
  const std::string kind = spec.substr(0, colon),
                    rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  const std::vector<std::string> kinds = {
      "cifar10:sample", "cifar10[:train|test]",     "folder:DIR",
      "list:FILE.csv",  "imagenet:DIR[:train|val]", "imagenet-seg:FILE.mat"};
  if (kind == "cifar10") return open_cifar10(rest);
  if (kind == "folder" && !rest.empty()) return open_folder(spec, rest);
  if (kind == "list" && !rest.empty()) return open_list(spec, rest);
  if (kind == "imagenet-seg" && !rest.empty()) return open_imagenet_seg(rest);
  if (kind == "imagenet" && !rest.empty()) {
    for (const std::string split : {"train", "val"})
      if (rest.ends_with(":" + split))
        return open_imagenet(spec, rest.substr(0, rest.size() - split.size() - 1) + "/" + split);
    return open_imagenet(spec, rest + "/val");
  }
  throw unknown_name_error("data set", spec, kinds);
}

Fields fields(SliceOptions& o) {
  return Fields()
      .add("limit", o.limit, "at most so many images of --data; 0 = all")
      .range(0, 1e12)
      .add("skip", o.skip, "leave out the first so many")
      .range(0, 1e12)
      .add("every", o.every,
           "of the others only every so many-th: 10 = a tenth, spread over all of a sorted list")
      .range(1, 1e12);
}

std::unique_ptr<Dataset> slice(std::unique_ptr<Dataset> whole, const SliceOptions& o) {
  if (o.skip < 0 || o.limit < 0 || o.every < 1 || o.skip >= whole->size())
    throw input_error("--skip {} --every {} --limit {}: the data set has {} examples", o.skip, o.every,
                      o.limit, whole->size());
  const int64_t left = (whole->size() - o.skip + o.every - 1) / o.every,
                count = o.limit == 0 ? left : std::min(o.limit, left);
  if (count == whole->size()) return whole;
  return std::make_unique<SlicedDataset>(std::move(whole), o.skip, o.every, count);
}

std::vector<std::string> image_files(const std::vector<std::string>& files_and_folders) {
  std::vector<std::string> out;
  for (const auto& path : files_and_folders) {
    std::error_code code;
    if (!fs::is_directory(path, code)) {
      out.push_back(path);  // whatever it is: reading it says what is wrong
      continue;
    }
    auto files = images_below(path);
    if (files.empty())
      throw input_error("{}: expected JPEG, PNG or WebP images in this folder, found none",
                        printable(path, 300));
    out.insert(out.end(), std::make_move_iterator(files.begin()), std::make_move_iterator(files.end()));
  }
  return out;
}

std::unique_ptr<Dataset> relabeled(const Dataset& data, std::vector<int> classes) {
  return std::make_unique<RelabeledDataset>(data, std::move(classes));
}

}  // namespace aha
