// Where data sets lie.
#pragma once

#include <string>

namespace aha {

// What was fetched once and is kept: AHA_CACHE, else XDG_CACHE_HOME/aha, else ~/.cache/aha.
std::string cache_folder();

// What ships with the program: AHA_DATA, else share/aha/data beside the program's bin/, else the data/ folder
// of the source tree that the program was built in (looked for upwards from the program, so that the tree may
// be moved). Input error that lists the places where there is none.
std::string bundled_data_folder();

}  // namespace aha
