// Who makes the maps of several methods, and what happens where one fails.
//
// A method may compute the maps of others along with its own (Method::shares_work_with); sharing them saves
// their whole cost. Where a batch fails, every image and method is tried alone: one image that cannot be
// explained costs no other its map.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aha/evaluate/image_batch.h"
#include "aha/methods/method.h"

namespace aha {

using Methods = std::vector<std::unique_ptr<Method>>;

// Methods whose maps of the same images are made by one call: methods[0] makes them all.
struct SharedWork {
  std::vector<size_t> methods;
  std::vector<int64_t> rows;  // images of the batch
};

// missing[m]: the images of the batch whose map of method m is wanted. Each method with one or more is in
// exactly one group; of the methods that could lead a group, the one that shares the most does.
std::vector<SharedWork> shared_work(const Methods& methods, const std::vector<std::vector<int64_t>>& missing);

// One for each of work.methods. `batch` holds the images of work.rows alone. An error that a method throws
// becomes the failure of the image that it is thrown for.
std::vector<Attribution> make_maps(const Methods& methods, const SharedWork& work, const ImageBatch& batch,
                                   const std::string& explained, const Context& context);

}  // namespace aha
