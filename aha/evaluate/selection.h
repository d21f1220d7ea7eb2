// Which images of a data set a protocol evaluates.
//
// Images are taken in the order of the data set while they are classified correctly (correct_only), the
// predicted class has least_probability, fewer than most_per_class of that class and fewer than most_images
// at all were taken, and, where the blur is adaptive, some blur up to the widest hides the class. MDA's
// public code also leaves out images by the maps of the method under test; here all methods see the same
// images.
//
// Cost: one forward pass for each image, and up to 37 more with an adaptive blur.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aha/data/dataset.h"
#include "aha/evaluate/protocol.h"
#include "aha/networks/classifier.h"

namespace aha {

struct Selection {
  std::vector<int64_t> chosen;  // indices of the data set; images that cannot be read are among them
  std::map<std::string, std::string> left_out;  // by image: the reason
};

// All images, unseen, where the protocol does not select.
Selection select_images(const Protocol& protocol, const ReferenceOptions& look, Classifier& target,
                        const Dataset& data, const InputSpec& input, const Context& context);

}  // namespace aha
