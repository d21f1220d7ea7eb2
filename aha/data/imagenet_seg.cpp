#include "aha/data/imagenet_seg.h"

#include <hdf5.h>

#include <mutex>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr hsize_t kMostPixels = 100'000'000, kMostImages = 10'000'000;

// One lock for the library's global state.
std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

class Hdf5Id {
 public:
  Hdf5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Id(Hdf5Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&&) = delete;
  ~Hdf5Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

struct ByteArray {
  std::vector<hsize_t> shape;
  std::vector<uint8_t> values;
};

// Calls of one file, made while the mutex is held.
class Hdf5File {
 public:
  explicit Hdf5File(std::string path) : path_(std::move(path)), file_(opened(path_)) {}

  // References in a data set of the file.
  std::vector<hobj_ref_t> references(const std::string& name) const {
    const Hdf5Id set(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (set < 0) throw refusal("references under " + name);
    return references_in(set, name);
  }

  // The array that is referred to; `cells`: an array of references stands for what its first one refers to.
  ByteArray array(hobj_ref_t reference, const std::string& what, bool cells) const {
    const Hdf5Id set(H5Rdereference2(file_, H5P_DEFAULT, H5R_OBJECT, &reference), H5Oclose);
    if (set < 0 || H5Iget_type(set) != H5I_DATASET) throw refusal(what);
    const Hdf5Id type(H5Dget_type(set), H5Tclose);
    if (cells && H5Tget_class(type) == H5T_REFERENCE) return array(references_in(set, what)[0], what, false);
    if (H5Tget_class(type) != H5T_INTEGER || H5Tget_size(type) != 1) throw refusal(what + " of bytes");
    ByteArray out;
    out.shape = shape_of(set);
    hsize_t count = 1;
    for (const hsize_t side : out.shape) {
      if (side == 0 || side > kMostPixels || (count *= side) > 3 * kMostPixels) throw refusal(what);
    }
    out.values.resize(count);
    if (H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.values.data()) < 0)
      throw refusal(what);
    return out;
  }

  Error refusal(const std::string& expected) const {
    return input_error("{}: expected {}, as gtsegs_ijcv.mat has them; found none or others",
                       printable(path_, 300), expected);
  }

 private:
  static Hdf5Id opened(const std::string& path) {
    const MappedFile there(path);  // says what is wrong with the path
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (file < 0) throw input_error("{}: expected a MATLAB 7.3 file (HDF5)", printable(path, 300));
    return file;
  }

  static std::vector<hsize_t> shape_of(hid_t set) {
    const Hdf5Id space(H5Dget_space(set), H5Sclose);
    const int dimensions = H5Sget_simple_extent_ndims(space);
    std::vector<hsize_t> shape(static_cast<size_t>(std::max(dimensions, 0)));
    if (!shape.empty()) H5Sget_simple_extent_dims(space, shape.data(), nullptr);
    return shape;
  }

  std::vector<hobj_ref_t> references_in(hid_t set, const std::string& what) const {
    const Hdf5Id type(H5Dget_type(set), H5Tclose);
    hsize_t count = 1;
    for (const hsize_t side : shape_of(set)) {
      if (side == 0 || side > kMostImages || (count *= side) > kMostImages)
        throw refusal("references under " + what);
    }
    std::vector<hobj_ref_t> out(count);
    if (H5Tget_class(type) != H5T_REFERENCE || H5Tequal(type, H5T_STD_REF_OBJ) <= 0 ||
        H5Dread(set, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) < 0)
      throw refusal("references under " + what);
    return out;
  }

  std::string path_;
  Hdf5Id file_;
};

// (3, W, H), or (W, H) of gray, columns first -> rows of RGB.
Image image_from_columns(const ByteArray& array) {
  const bool color = array.shape.size() == 3;
  const size_t W = array.shape[color ? 1 : 0], H = array.shape[color ? 2 : 1];
  Image image(static_cast<int>(W), static_cast<int>(H));
  for (size_t y = 0; y < H; ++y)
    for (size_t x = 0; x < W; ++x)
      for (size_t c = 0; c < 3; ++c)
        image.rgb[(y * W + x) * 3 + c] = array.values[((color ? c : 0) * W + x) * H + y];
  return image;
}

class ImageNetSeg : public Dataset {
 public:
  explicit ImageNetSeg(const std::string& file) : name_("imagenet-seg:" + file) {
    const std::lock_guard lock(hdf5_mutex());
    file_ = std::make_unique<Hdf5File>(file);
    images_ = file_->references("/value/img");
    masks_ = file_->references("/value/gt");
    if (images_.size() != masks_.size())
      throw input_error("{}: expected as many masks as images, found {} and {}", printable(file, 300),
                        masks_.size(), images_.size());
  }
  ~ImageNetSeg() override {
    const std::lock_guard lock(hdf5_mutex());
    file_.reset();
  }
  std::string name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  int label(int64_t) const override { return -1; }
  std::string id(int64_t index) const override { return fmt::format("imagenet-seg/{}", index); }
  bool annotated() const override { return true; }
  Image image(int64_t index) const override {
    return read(images_.at(index), fmt::format("image {} (3, W, H)", index), false);
  }
  Annotation annotation(int64_t index) const override {
    return {read(masks_.at(index), fmt::format("mask {} (W, H)", index), true), {}};
  }

 private:
  Image read(hobj_ref_t reference, const std::string& what, bool mask) const {
    ByteArray array;
    {
      const std::lock_guard lock(hdf5_mutex());
      array = file_->array(reference, what, mask);
      const bool gray = array.shape.size() == 2;
      if (!gray && (mask || array.shape.size() != 3 || array.shape[0] != 3)) throw file_->refusal(what);
    }
    return image_from_columns(array);
  }

  std::string name_;
  std::unique_ptr<Hdf5File> file_;
  std::vector<hobj_ref_t> images_, masks_;
};

}  // namespace

std::unique_ptr<Dataset> open_imagenet_seg(const std::string& file) {
  return std::make_unique<ImageNetSeg>(file);
}

}  // namespace aha
