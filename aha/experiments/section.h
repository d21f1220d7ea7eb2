// What an experiment leaves for a reader: the table as Markdown and CSV, and a section of docs/experiments.md
// with the paper's figures beside ours and what agrees.
#pragma once

#include <string>

#include "aha/experiments/outcome.h"
#include "aha/experiments/recipe.h"

namespace aha {

// One line for each row; each cell is our mean with half of its 95 % interval and, below it, what the paper
// has there.
std::string outcome_markdown(const Recipe& recipe, const Outcome& outcome);
// block, class, row, column, mean, low, high, images, paper
std::string outcome_csv(const Recipe& recipe, const Outcome& outcome);
// Figures stand in it by their file names.
std::string section_markdown(const Recipe& recipe, const Outcome& outcome);

// All sections that OUT/NAME/section.md has, in the order of the experiments, with their figures copied to
// images/experiments beside the page. Returns the experiments that have none.
std::vector<std::string> write_experiments_page(const std::string& page, const std::string& out);

// What the paper has in this place; NaN where it has nothing.
double paper_figure(const Recipe& recipe, const OutcomeRow& row, const std::string& column);

}  // namespace aha
