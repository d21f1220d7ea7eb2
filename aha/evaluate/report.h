// Everything an evaluation leaves in its folder: results.json, results.csv, per_image.csv, table.md,
// table.tex, curves.csv, curves.svg, curves.png and report.html, one page that needs no network. Its script
// sorts and hides columns and shows the values of curves; without it the page can be read all the same.
#pragma once

#include <string>
#include <vector>

#include "aha/evaluate/evaluate.h"

namespace aha {

std::string report_html(const Evaluation& evaluation);

// Returns the files written.
std::vector<std::string> write_results(const Evaluation& evaluation, const std::string& out);

}  // namespace aha
