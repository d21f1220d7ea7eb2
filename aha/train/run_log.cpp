#include "aha/train/run_log.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

// A line that was cut by a kill is no JSON and goes too.
std::string rows_up_to(const std::string& path, int64_t step) {
  std::string kept;
  if (step == 0 || !std::filesystem::exists(path)) return kept;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_object() && row.contains("step") && row["step"].is_number() && row["step"] <= step)
      kept += line + "\n";
  }
  return kept;
}

void put_scalars(EventFile& events, const std::string& tag, int64_t step,
                 const nlohmann::ordered_json& value) {
  if (value.is_number() && tag != "step") events.scalar(tag, step, value.get<double>());
  if (value.is_object())
    for (const auto& [name, inner] : value.items())
      put_scalars(events, tag.empty() ? name : tag + "/" + name, step, inner);
}

}  // namespace

RunLog::RunLog(const std::string& folder, int64_t resume_step)
    : path_(folder + "/log.jsonl"), events_(folder) {
  write_file_atomically(path_, rows_up_to(path_, resume_step));
  file_.open(path_, std::ios::app | std::ios::binary);
  if (!file_) throw input_error("{}: cannot write: {}", path_, std::strerror(errno));
}

void RunLog::write(const nlohmann::ordered_json& row) {
  if (!(file_ << row.dump() << std::endl))
    throw work_error("{}: cannot write: {}", path_, std::strerror(errno));
  put_scalars(events_, "", row.at("step").get<int64_t>(), row);
  events_.flush();
}

}  // namespace aha
