#include "aha/train/run_folder.h"

#include <filesystem>

#include "aha/base/error.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::unique_ptr<FolderLock> enter_run_folder(const TrainOptions& options) {
  const std::string& out = options.out;
  if (out.empty()) throw input_error("--out: expected the folder of the run, found nothing");
  if (options.resume && options.overwrite)
    throw input_error("--resume continues a run, --overwrite begins anew: expected one of them, found both");
  if (options.resume && !fs::is_directory(out))
    throw input_error("--resume: expected the folder of a run, found no {}", printable(out, 300));
  if (!answers_for_folder()) return nullptr;
  return enter_folder(out, {"checkpoint.safetensors", "log.jsonl"}, "a run", options.overwrite);
}

void clear_run_folder(const std::string& folder) {
  std::vector<fs::path> old = {"checkpoint.safetensors", "best.safetensors", "log.jsonl"};
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().find(".tfevents.") != std::string::npos)
      old.push_back(entry.path().filename());
  for (const auto& name : old) fs::remove(fs::path(folder) / name);
}

}  // namespace aha
