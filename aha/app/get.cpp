#include "aha/app/get.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/data/cifar10.h"
#include "aha/networks/public_models.h"

namespace aha {
namespace {

const Gettable kCifar10 = {"cifar10", "CIFAR-10, 60,000 images of 32x32 pixels in ten classes",
                           "none stated; Krizhevsky 2009 asks to be cited"};

}  // namespace

std::vector<Gettable> gettable() {
  std::vector<Gettable> list = {kCifar10};
  for (const auto& model : public_models()) list.push_back({model.name, model.summary, model.license});
  return list;
}

Got get(const GetOptions& options, const Context& context) {
  std::vector<std::string> names;
  for (const auto& one : gettable()) names.push_back(one.name);
  if (std::ranges::find(names, options.name) == names.end())
    throw unknown_name_error("data set or model to get", options.name, names);
  if (options.name == kCifar10.name) {
    const auto fetched = get_cifar10(options.from, context);
    return {"data", fetched.file, fetched.was_there, kCifar10.license, "--data cifar10:train, cifar10:test"};
  }
  const auto fetched = get_public_model(options.name, options.from, context);
  std::string license = fetched.card.provenance.value("license", "");
  const char* use = fetched.card.kind == "encoder" ? "--encoder " : "--target ";
  return {"model", fetched.directory, fetched.was_there, std::move(license), use + options.name};
}

}  // namespace aha
