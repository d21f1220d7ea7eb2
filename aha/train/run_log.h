// What a run says about itself: DIR/log.jsonl, one JSON object a line, and the same numbers for TensorBoard.
//
// Each row has "step"; nested objects become tags with a slash ("validation/accuracy"). A resumed run drops
// the rows behind the step it resumes from, so that the log reads as if nothing had happened; TensorBoard
// does the same by itself when it meets a second event file with earlier steps.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "aha/train/event_file.h"

namespace aha {

class RunLog {
 public:
  // Rows up to `resume_step` are kept; 0 begins anew.
  RunLog(const std::string& folder, int64_t resume_step);

  void write(const nlohmann::ordered_json& row);

 private:
  std::string path_;
  std::ofstream file_;
  EventFile events_;
};

}  // namespace aha
