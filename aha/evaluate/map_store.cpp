#include "aha/evaluate/map_store.h"

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"
#include "aha/evaluate/row_store.h"

namespace aha {

namespace fs = std::filesystem;

MapStore::MapStore(const std::string& out) : folder_((fs::path(out) / "maps").string()) {
  make_directories(folder_);
}

std::string MapStore::file(const std::string& key, const char* extension) const {
  return (fs::path(folder_) / (key + extension)).string();
}

// The .json is written last: where it is, the map is whole.
bool MapStore::has(const std::string& key) const {
  return fs::exists(file(key, ".json")) && fs::exists(file(key));
}

KeptMap MapStore::read(const std::string& key) const {
  const NpyArray map = read_npy(file(key));
  const auto json = nlohmann::json::parse(read_file(file(key, ".json")), nullptr, false);
  if (map.shape.size() != 2 || !json.is_object())
    throw input_error("{}: expected a map (H, W) and {} beside it; delete both to have it made again",
                      file(key), file(key, ".json"));
  return {torch::tensor(map.values).view({map.shape[0], map.shape[1]}), made_from_json(json)};
}

void MapStore::write(const std::string& key, const KeptMap& kept) const {
  const Tensor map = kept.map.to(torch::kFloat32).contiguous();
  write_npy(file(key), {map.size(0), map.size(1)}, {map.data_ptr<float>(), static_cast<size_t>(map.numel())});
  nlohmann::json json = json_from_made(kept.made);
  json.update({{"image", kept.image}, {"method", kept.method}, {"class", kept.explained}});
  const auto replace = nlohmann::json::error_handler_t::replace;  // names that are not UTF-8
  write_file_atomically(file(key, ".json"), json.dump(-1, ' ', false, replace) + "\n");
}

}  // namespace aha
