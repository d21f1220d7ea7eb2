// The class that is explained, as a user names it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "aha/networks/class_names.h"

namespace aha {

// The one class of this index, WordNet id of ImageNet-1k or full name (networks/class_names.h), or the one
// class whose name begins so (case and further names after a comma do not matter). Input error that lists the
// classes whose names contain it, or near names.
int class_from_text(const std::string& text, const ClassifierInfo& target);

struct ChosenClass {
  int index = 0;
  std::string name;  // empty where the target has no names
  double probability = 0;
};
nlohmann::ordered_json json_from(const ChosenClass& chosen);

ChosenClass class_at(int index, double probability, const ClassifierInfo& target);

// `wanted`: "predicted", an index or a name; probs (C), double.
ChosenClass chosen_class(const std::string& wanted, const Tensor& probs, const ClassifierInfo& target);

}  // namespace aha
