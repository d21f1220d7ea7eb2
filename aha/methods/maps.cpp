// maps:FOLDER: maps that were made elsewhere, as a method among the others: one .npy file for each image, of
// any size, resized bilinearly to the input.
//
// The longest end of the image's path that FOLDER has decides: for photos/cats/tom.jpg the file is
// photos/cats/tom.npy, else cats/tom.npy, else tom.npy. Each may also end in .map.npy, as `aha explain`
// writes them.
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

bool has_npy(const std::string& folder) {
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, code), end;
       !code && it != end; it.increment(code))
    if (it->path().extension() == ".npy") return true;
  return false;
}

// (H, W)
Tensor map_from_npy(const std::string& path, int64_t height, int64_t width) {
  NpyArray array = read_npy(path);
  auto shape = array.shape;
  if (shape.size() == 3 && shape[0] == 1) shape.erase(shape.begin());
  if (shape.size() != 2 || shape[0] == 0 || shape[1] == 0)
    throw input_error("{}: expected a map of shape (h, w) or (1, h, w), found ({})", printable(path, 300),
                      fmt::join(array.shape, ", "));
  for (size_t i = 0; i < array.values.size(); ++i)
    if (!std::isfinite(array.values[i]))
      throw input_error("{}: expected finite values, found {} in row {}, column {}", printable(path, 300),
                        array.values[i], static_cast<int64_t>(i) / shape[1],
                        static_cast<int64_t>(i) % shape[1]);
  const Tensor map = torch::from_blob(array.values.data(), {1, shape[0], shape[1]}).clone();
  if (shape[0] == height && shape[1] == width) return map[0];
  if (shape[0] <= height && shape[1] <= width) return upsampled(map, height, width)[0];
  // Where it shrinks, every value counts.
  return at::_upsample_bilinear2d_aa(map.unsqueeze(1), {height, width}, false)[0][0];
}

class Maps : public Method {
 public:
  Fields fields() override { return Fields().add("folder", folder_, "folder of STEM.npy files"); }

  void prepare(const MethodContext&) override {
    if (!fs::is_directory(folder_))
      throw input_error("method maps: expected a folder of .npy files, found none at {}",
                        printable(folder_, 300));
    if (!has_npy(folder_))
      throw input_error("method maps: expected .npy files in {}, found none", printable(folder_, 300));
  }

  void name_images(std::span<const std::string> names, std::span<const uint64_t> streams) override {
    for (size_t i = 0; i < names.size(); ++i) names_[streams[i]] = names[i];
  }

  std::string depends_on(const std::string& image) const override {
    const std::string file = file_of(image);
    if (file.empty()) return "no file";
    const auto [known, fresh] = content_.try_emplace(file);
    if (fresh) known->second = sha256_of_file(file);
    return known->second;
  }

  Attribution attribute(const Tensor& pixels, const Tensor&, std::span<const uint64_t> streams,
                        const Context&) override {
    std::vector<Tensor> maps;
    for (const uint64_t stream : streams) {
      const auto named = names_.find(stream);
      if (named == names_.end()) throw std::logic_error("maps: name_images() comes before attribute()");
      const std::string& image = named->second;
      const std::string file = file_of(image);
      if (file.empty())
        throw input_error("method maps: expected {} (or a longer end of the path of {}), found none",
                          printable((fs::path(folder_) / fs::path(image).stem()).string() + ".npy", 300),
                          printable(image, 300));
      maps.push_back(map_from_npy(file, pixels.size(2), pixels.size(3)));
    }
    return {torch::stack(maps).to(pixels.device()), Passes{}};
  }

 private:
  // Empty where there is none.
  std::string file_of(const std::string& image) const {
    std::vector<fs::path> parts;
    for (const auto& part : fs::path(image).relative_path().lexically_normal())
      if (part != "..") parts.push_back(part);
    if (parts.empty()) return "";
    parts.back() = parts.back().stem();
    for (auto first = parts.begin(); first != parts.end(); ++first) {
      fs::path whole = folder_;
      for (auto part = first; part != parts.end(); ++part) whole /= *part;
      for (const char* extension : {".npy", ".map.npy"})
        if (std::string file = whole.string() + extension; fs::is_regular_file(file)) return file;
    }
    return "";
  }

  std::string folder_;
  std::map<uint64_t, std::string> names_;               // by stream
  mutable std::map<std::string, std::string> content_;  // sha256 by file
};

}  // namespace

MethodRecord maps_method() {
  return {"maps",
          "maps made elsewhere: FOLDER/STEM.npy, (h, w) or (1, h, w), any size",
          "",
          "",
          fits_any,
          [] { return std::unique_ptr<Method>(new Maps); },
          "For photos/cats/tom.jpg the first of photos/cats/tom.npy, cats/tom.npy, tom.npy that FOLDER has; "
          "also .map.npy, as `aha explain` writes them.",
          false,
          "folder"};
}

}  // namespace aha
