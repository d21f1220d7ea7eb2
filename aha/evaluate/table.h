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

// Best first by the first difference asked for, or else by the last metric: one order for tables, curves and
// images.
std::vector<const MethodSummary*> ranked_rows(const Summary& summary, const std::string& explained);

// The same order within groups of equal cost, which tables show one after the other.
struct RowGroup {
  CostGroup group;
  std::vector<const MethodSummary*> rows;
};
std::vector<RowGroup> grouped_rows(const Summary& summary, const std::string& explained);

// 1 for the best by the metric's own direction, among the methods of the same explained class that are no
// ceilings; 0 for a ceiling, and where nothing was measured.
int place_among(const Summary& summary, const MethodSummary& row, const MetricRecord& metric);

std::string up_or_down(const MetricRecord& metric);   // an arrow to where it is better
std::string seconds_text(const Timing& timing);       // "12.3 ms", "" where not timed
std::string references_text(const Summary& summary);  // "mean over black, blur"
std::string number_text(double value);                // four digits behind the point, "" for NaN
std::string dropped_text(const MethodSummary& row);   // "2 constant, 1 failed", "" where none is
std::string maps_text(double break_even);             // "19,194", "never"

// What the marks of the tables mean, as far as they occur.
std::vector<std::string> legend_of(const Summary& summary);

}  // namespace aha
