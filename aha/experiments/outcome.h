// What an experiment found: rows of figures, in blocks that are compared within.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "aha/base/stats.h"

namespace aha {

struct Found {
  Interval value;                      // 95 % over images; low = high where there is none
  std::vector<double> per_image = {};  // in the order of the images; empty = not known
};

struct OutcomeRow {
  std::string block, explained, row;
  std::string paper;        // the part of the paper's figures that stands beside it
  int64_t images = 0;       // behind the figures
  std::string passes = {};  // of the target for one map
  double seconds = std::numeric_limits<double>::quiet_NaN();  // for one map
  std::map<std::string, Found> found = {};                    // by column
  std::string image_set = {};                                 // rows with the same one are of the same images
};

struct OutcomeColumn {
  std::string name;
  int better = 0;  // 1 = higher, -1 = lower, 0 = neither
};

struct OutcomeFigure {
  std::string file, title;  // file: in the experiment's folder
};

struct Outcome {
  std::vector<OutcomeColumn> columns;
  std::vector<OutcomeRow> rows;
  std::vector<OutcomeFigure> figures;
  std::vector<std::string> facts;  // sentences of what was done
  double seconds = 0;              // of this call

  // Null where there is none.
  const OutcomeRow* find(const std::string& block, const std::string& explained,
                         const std::string& row) const;
  // Blocks with their explained classes, in order.
  std::vector<std::pair<std::string, std::string>> blocks() const;
};

}  // namespace aha
