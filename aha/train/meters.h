// Means of named numbers since the last reset, over all workers.
#pragma once

#include <map>
#include <string>

#include "aha/train/worker_group.h"

namespace aha {

using Scores = std::map<std::string, double>;

class Meters {
 public:
  void add(const std::string& name, double value, double weight = 1);
  void reset() { sums_.clear(); }
  // The means over all workers. Every worker calls it with the same names.
  Scores means(WorkerGroup& group) const;

 private:
  struct Sum {
    double weighted = 0, weight = 0;
  };
  std::map<std::string, Sum> sums_;  // in one order everywhere
};

}  // namespace aha
