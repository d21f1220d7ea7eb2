// The folder of a training run: who may write there, and over what.
//
// A second process is refused (base/folder_lock.h). A folder that holds files, but neither a checkpoint nor a
// log, is not a run's: --overwrite writes among them. With --overwrite a run that was there begins anew.
#pragma once

#include <memory>

#include "aha/base/folder_lock.h"
#include "aha/train/trainer.h"

namespace aha {

// Whether this process answers for the files of a run or an evaluation: one alone, the one that starts the
// workers, or the first of torchrun's.
bool answers_for_folder();

// Held as long as the run writes; null in workers, whose starter holds it. Input error where the folder is
// not to be used.
std::unique_ptr<FolderLock> enter_run_folder(const TrainOptions& options);

// Removes what an earlier run left.
void clear_run_folder(const std::string& folder);

}  // namespace aha
