// Maps that an evaluation keeps: OUT/maps/KEY.npy with how it was made in KEY.json. Whoever asks for one more
// metric, reference or protocol later does not pay for the maps again; the report shows some of them.
#pragma once

#include <optional>
#include <string>

#include "aha/methods/method.h"

namespace aha {

struct KeptMap {
  Tensor map;  // (H, W)
  Attribution::Made made;
  std::string image = {}, method = {}, explained = {};  // whose it is, for those who look at the folder
};

class MapStore {
 public:
  explicit MapStore(const std::string& out);  // makes OUT/maps

  bool has(const std::string& key) const;
  KeptMap read(const std::string& key) const;
  void write(const std::string& key, const KeptMap& kept) const;
  std::string file(const std::string& key, const char* extension = ".npy") const;

 private:
  std::string folder_;
};

}  // namespace aha
