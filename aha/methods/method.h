// A method: anything that turns (image, class) into a map, higher = more important.
//
//   auto method = make_method("smoothgrad:samples=20:blur=2", {target});
//   auto maps = method->attribute(pixels, classes, streams, context).maps;  // (B, H, W)
//
// A method is a class hidden in its own .cpp file and a record in catalog.cpp. Its options are its members,
// listed by fields(); they are set between its making and prepare(). Its random numbers come from
// (context.seed, the image's stream) alone, so that an image gets the same map alone and in any batch.
// docs/adding_a_method.md walks through one.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/networks/classifier.h"
#include "aha/tensor/tensor.h"

namespace aha {

struct LoadedExplainer;

// What a method may look at. Both outlive the method.
struct MethodContext {
  Classifier& target;
  LoadedExplainer* explainer = nullptr;  // null = none was given
};

// Passes of the target.
struct Passes {
  double forwards = 0, backwards = 0;
};
std::string text_from_passes(const Passes& passes);  // "60 F + 60 B", "12 F", "0"

// Maps, and what it took to make them.
struct Attribution {
  // How the map of one image was made.
  struct Made {
    Passes passes;
    int steps = 0;  // of refinement
    double loss =
        std::numeric_limits<double>::quiet_NaN();  // of the last of these steps; NaN where there was none
    std::string failure = {};  // why there is no map: it is NaN then; empty = there is one
  };
  Tensor maps;             // (B, H, W) float32 without autograd history
  std::vector<Made> made;  // one for each image

  Attribution() = default;
  // The same passes for each image.
  Attribution(Tensor maps, const Passes& each)
      : maps(std::move(maps)), made(static_cast<size_t>(this->maps.size(0)), Made{each}) {}
};

class Method {
 public:
  virtual ~Method() = default;

  virtual Fields fields() { return {}; }

  // Called once, after the options are set: keeps the target and what else it needs of the context, and
  // refuses options that do not fit it.
  virtual void prepare(const MethodContext& context) { target_ = &context.target; }

  // pixels (B, 3, H, W) in [0, 1], classes (B) int64, one stream for each image.
  virtual Attribution attribute(const Tensor& pixels, const Tensor& classes,
                                std::span<const uint64_t> streams, const Context& context) = 0;

  // Whether its maps are those of the context's explainer.
  virtual bool learned() const { return false; }

  // Whether the time it takes decides on the map: images then must not wait for each other, and are given one
  // by one.
  virtual bool timed() const { return false; }

  // What the images of these streams are called; told before the first attribute() of each. Of use to maps
  // that were made elsewhere.
  virtual void name_images(std::span<const std::string> names, std::span<const uint64_t> streams) {}
  // What the map of this image depends on beside pixels, class, target, explainer and options: the content of
  // a file. Stored figures are found by it (evaluate/row_key.h).
  virtual std::string depends_on(const std::string& image) const { return ""; }

  // Some methods compute the maps of others along with their own: a blurred map is a plain one, smoothed, and
  // a refinement of five steps passes the one of three. Says whether the other's maps come without further
  // work.
  virtual bool shares_work_with(const Method&) const { return false; }
  // attribute() of this method, then of each of `others`, all of which it shares work with: bit for bit what
  // each gives by itself, and the passes each would need by itself.
  virtual std::vector<Attribution> attribute_shared(std::span<Method* const> others, const Tensor& pixels,
                                                    const Tensor& classes, std::span<const uint64_t> streams,
                                                    const Context& context);

  // Name and options: two methods with the same identity give the same maps. Set by make_method().
  const std::string& identity() const { return identity_; }
  void set_identity(std::string identity) { identity_ = std::move(identity); }

 protected:
  Classifier* target_ = nullptr;

 private:
  std::string identity_;
};

// The groups of the catalog.
enum class MethodKind {
  kLearned,
  kTransformer,
  kConvNet,
  kTransformerOrConvNet,
  kAny,
  kCeiling,
  kControl,
  kGiven
};

struct MethodRecord {
  std::string name, summary, paper;
  std::string needs;                   // of the target: "", "gradient", "attention", "feature maps"...
  bool (*fits)(const MethodContext&);  // whether they are there
  std::unique_ptr<Method> (*make)();
  std::string note = {};               // which form the paper's tables used, what was reconstructed
  bool reads_class = true;             // whether the map depends on the class
  std::string argument = {};           // the option that stands behind the name alone: "maps:FOLDER"
  MethodKind kind = MethodKind::kAny;  // said by the list in catalog.cpp
  // Metrics that its maps are searched or trained for: a table marks its figures there.
  std::vector<std::string> optimizes = {};
};

// The stream of an image, from the pixels (3, H, W) that the network sees: the same photo has the same random
// numbers under any name.
uint64_t image_stream(const Tensor& pixels);
std::vector<uint64_t> image_streams(const Tensor& pixels);  // (B, 3, H, W)

}  // namespace aha
