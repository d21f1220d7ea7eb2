// The tables of an evaluation as text: JSON for programs, CSV for spreadsheets, Markdown for people, LaTeX
// for papers.
#pragma once

#include <string>

#include "aha/evaluate/evaluate.h"

namespace aha {

nlohmann::json results_json(const Evaluation& evaluation);
std::string results_csv(const Evaluation& evaluation);    // one line per method, class and metric
std::string per_image_csv(const Evaluation& evaluation);  // one line per image, method and class
std::string curves_csv(const Evaluation& evaluation);     // one line per method, class, reference and point
std::string table_markdown(const Evaluation& evaluation);
std::string table_latex(const Evaluation& evaluation);

// Best first by the last difference asked for, or else by the last metric: one order for tables, curves and
// images.
std::vector<const MethodSummary*> ranked_rows(const Summary& summary, const std::string& explained);

// Of all methods of the same explained class, by the metric's own direction.
bool is_best(const Summary& summary, const MethodSummary& row, const MetricRecord& metric);
std::string up_or_down(const MetricRecord& metric);  // an arrow to where it is better
std::string seconds_text(const Timing& timing);      // "12.3 ms", "" where not timed

}  // namespace aha
