// A method: anything that turns (picture, class) into a map, higher = more important.
//
//   auto method = make_method("smoothgrad:samples=20:blur=2", {target});
//   auto maps = method->maps(pixels, classes, streams, context);  // (B, H, W)
//
// A method is a class hidden in its own .cpp file and a record in catalog.cpp. Its options are its members,
// listed by fields(); they are set between its making and prepare(). Its random numbers come from
// (context.seed, the picture's stream) alone, so that a picture gets the same map alone and in any batch.
#pragma once

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

// Passes of the target that one map costs.
struct MethodCost {
  double forwards = 0, backwards = 0;
};

class Method {
 public:
  virtual ~Method() = default;

  virtual Fields fields() { return {}; }

  // Called once, after the options are set: keeps what it needs of the context, and refuses options that do
  // not fit it.
  virtual void prepare(const MethodContext& context) = 0;

  // pixels (B, 3, H, W) in [0, 1], classes (B) int64, one stream a picture -> (B, H, W) float32 without
  // autograd history.
  virtual Tensor maps(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                      const Context& context) = 0;

  virtual MethodCost cost() const = 0;

  // Whether its maps are those of the context's explainer.
  virtual bool learned() const { return false; }

  // Some methods meet others on the way to their own map: a blurred map is a plain one's, smoothed, and a refinement of five steps
  // passes the one of three. `meets` says whether this method meets the other's map.
  virtual bool meets(const Method&) const { return false; }
  // maps() of this method, then of each of `others`, all of which it meets; bit for bit what each gives by itself.
  virtual std::vector<Tensor> maps_and_met(std::span<Method* const> others, const Tensor& pixels, const Tensor& classes,
                                           std::span<const uint64_t> streams, const Context& context);

  // Name and options: two methods with the same identity give the same maps. Set by make_method().
  const std::string& identity() const { return identity_; }
  void set_identity(std::string identity) { identity_ = std::move(identity); }

 private:
  std::string identity_;
};

struct MethodRecord {
  std::string name, summary, paper;
  std::string needs;                   // of the target: "", "gradient", "attention", "feature maps"...
  bool (*fits)(const MethodContext&);  // whether they are there
  std::unique_ptr<Method> (*make)();
};

// The stream of a picture, from what it is called in its data set.
uint64_t picture_stream(std::string_view id);

}  // namespace aha
