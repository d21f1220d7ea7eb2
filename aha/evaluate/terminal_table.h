// The tables of an evaluation for a terminal: aligned, fitted to its width, the best of a column in bold.
// table.md has the same as Markdown.
#pragma once

#include "aha/evaluate/table.h"

namespace aha {

// width 0 = any.
std::string table_text(const Evaluation& evaluation, size_t width, bool color);

}  // namespace aha
