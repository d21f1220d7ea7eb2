// An evaluation folder read again, for looking at: the table, the mean curves and what each method got on
// each image, and the maps that were kept. Input error where the folder is none.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace aha {

// One method on one image.
struct ImageFigures {
  std::string method, explained;          // "predicted" or "truth"
  std::map<std::string, double> figures;  // by metric; those that could not be measured are absent
  std::string map = {};                   // file of the map, where the evaluation kept it
};

struct ResultsFolder {
  nlohmann::json results;                                            // results.json
  std::vector<std::string> images;                                   // in the order of the table
  std::map<std::string, std::vector<ImageFigures>> figures_of = {};  // by image
};

ResultsFolder read_results(const std::string& folder);

// The cells of one line of a CSV file as `aha eval` writes it: quoted where they hold a comma or a quote.
std::vector<std::string> cells_of_line(const std::string& line);

}  // namespace aha
