#include "aha/evaluate/results_folder.h"

#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMostResultsBytes = uint64_t{1} << 28;

}  // namespace

std::vector<std::string> cells_of_line(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"')
      cells.back() += line[++i];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += line[i];
  }
  return cells;
}

namespace {

// The maps of OUT/maps by image, method and class; of two the one made last.
class KeptMaps {
 public:
  explicit KeptMaps(const fs::path& folder) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      if (entry.path().extension() != ".json" || entry.file_size(none) > kMostMapBytes) continue;
      const auto json = nlohmann::json::parse(read_file(entry.path().string()), nullptr, false);
      const fs::path file = fs::path(entry.path()).replace_extension(".npy");
      if (!json.is_object() || !fs::exists(file, none)) continue;
      const auto text = [&](const char* key) {
        return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
      };
      Found& found = files_[{text("image"), text("method"), text("class")}];
      if (const auto made = entry.last_write_time(none); found.file.empty() || made > found.made)
        found = {file.string(), made};
    }
  }

  std::string of(const std::string& image, const std::string& method, const std::string& explained) const {
    const auto found = files_.find({image, method, explained});
    return found == files_.end() ? "" : found->second.file;
  }

 private:
  static constexpr uintmax_t kMostMapBytes = 1 << 16;  // of the text beside a map
  struct Found {
    std::string file;
    fs::file_time_type made;
  };
  std::map<std::array<std::string, 3>, Found> files_;
};

}  // namespace

ResultsFolder read_results(const std::string& folder) {
  const auto path_of = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  ResultsFolder out;
  out.results = nlohmann::json::parse(read_file(path_of("results.json"), kMostResultsBytes), nullptr, false);
  if (!out.results.is_object() || !out.results.contains("rows"))
    throw input_error("{}: expected what aha eval writes, found something else", path_of("results.json"));
  std::istringstream lines(read_file(path_of("per_image.csv"), kMostResultsBytes));
  const KeptMaps kept(fs::path(folder) / "maps");
  std::string line;
  std::getline(lines, line);
  const auto names = cells_of_line(line);
  if (names.size() < 3 || names[0] != "image" || names[1] != "method" || names[2] != "class")
    throw input_error("{}: expected columns image,method,class,..., found {}", path_of("per_image.csv"),
                      printable(line));
  for (int64_t number = 2; std::getline(lines, line); ++number) {
    const auto cells = cells_of_line(line);
    if (cells.size() != names.size())
      throw input_error("{} line {}: expected {} cells, found {}", path_of("per_image.csv"), number,
                        names.size(), cells.size());
    auto& all = out.figures_of[cells[0]];
    if (all.empty()) out.images.push_back(cells[0]);
    ImageFigures& one =
        all.emplace_back(ImageFigures{cells[1], cells[2], {}, kept.of(cells[0], cells[1], cells[2])});
    for (size_t c = 3; c < cells.size(); ++c) {
      double value = 0;
      const char* end = cells[c].data() + cells[c].size();
      if (const auto [at, code] = std::from_chars(cells[c].data(), end, value);
          code == std::errc() && at == end)
        one.figures[names[c]] = value;
    }
  }
  return out;
}

}  // namespace aha
