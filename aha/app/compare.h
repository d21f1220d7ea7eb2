// The verb behind `aha compare`: one image, all methods side by side, each with the score of its map.
#pragma once

#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/image/image.h"
#include "aha/methods/method.h"

namespace aha {

struct ComparedMethod {
  std::string method;
  std::vector<float> map;              // (size, size), row-major
  double deletion = 0, insertion = 0;  // the paper's ten-point rule, mean over black, mean and blur
  double seconds = 0;
};

struct Compared {
  std::string image;
  int class_index = 0;
  std::string class_name;
  double probability = 0;
  int size = 0;
  std::vector<ComparedMethod> methods;  // in the order asked for
  Image sheet;                          // the image and the maps over it, labeled
};

// `wanted`: "predicted", a class index or a class name.
Compared compare(const MethodContext& by, const std::string& image, const std::vector<std::string>& methods,
                 const std::string& wanted, const Context& context);

}  // namespace aha
