// What trans-att and bi-att share: the class token's row through the blocks, times the integrated gradient of
// the last attention (path_integral.h).
#pragma once

#include "aha/methods/method.h"

namespace aha {

class ClassRowMethod : public Method {
 public:
  void prepare(const MethodContext& context) override;
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override;

 protected:
  explicit ClassRowMethod(std::string variant) : variant_(std::move(variant)) {}

  Fields fields_with(const std::vector<std::string>& variants, const std::string& of_variant,
                     const std::string& of_start);

  virtual Tensor class_row(const Tensor& pixels, const Tensor& classes,
                           const Context& context) = 0;  // (B, T)
  virtual int blocks_back() const { return 0; }          // through which class_row() goes backward

  std::string variant_;
  int start_ = 0, steps_ = 20, blocks_ = 0;
};

}  // namespace aha
