// Where data sets lie.
#pragma once

#include <string>

namespace aha {

// What was fetched once and is kept: AHA_CACHE, else XDG_CACHE_HOME/aha, else ~/.cache/aha.
std::string cache_folder();

// What ships with the program (base/shipped.h); AHA_DATA names another place.
std::string bundled_data_folder();

}  // namespace aha
