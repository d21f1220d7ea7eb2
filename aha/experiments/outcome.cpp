#include "aha/experiments/outcome.h"

#include <algorithm>

namespace aha {

const OutcomeRow* Outcome::find(const std::string& block, const std::string& explained,
                                const std::string& row) const {
  for (const auto& one : rows)
    if (one.block == block && one.explained == explained && one.row == row) return &one;
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> Outcome::blocks() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& row : rows)
    if (const std::pair one(row.block, row.explained); std::find(all.begin(), all.end(), one) == all.end())
      all.push_back(one);
  return all;
}

}  // namespace aha
