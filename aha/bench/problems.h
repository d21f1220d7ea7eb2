// What is measured, as data: bench/problems/SECTION.txt, one problem a line.
//
// "#" begins a remark, "long" a problem that is measured only where a long list was asked for. Then come the
// numbers, then words. Folder: the environment's AHA_PROBLEMS, else share/aha/problems beside the program's
// bin, else bench/problems in the source tree.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/progress.h"

namespace aha {

struct Problem {
  std::vector<double> sizes;
  std::string words;  // the rest of the line

  int64_t size(int i) const { return static_cast<int64_t>(sizes[i]); }
};

// `count` numbers per line; a line with fewer is an input error that names it.
std::vector<Problem> problems_of(const std::string& section, int count, bool with_long);

// The same from text; `where` opens the message of a refusal.
std::vector<Problem> problems_from_text(const std::string& text, const std::string& where, int count,
                                        bool with_long);

// Every problem of a section through measure(problem), which returns its row.
template <class Measure>
auto rows_of(const std::string& section, int count, bool with_long, const Context& context,
             const Measure& measure) {
  const auto problems = problems_of(section, count, with_long);
  auto progress = context.progress(section, static_cast<int64_t>(problems.size()));
  std::vector<std::invoke_result_t<Measure, const Problem&>> rows;
  for (const Problem& problem : problems) {
    rows.push_back(measure(problem));
    progress.advance(1, problem.words);
  }
  return rows;
}

// Words that are a name and an architecture: "vit4 vit_mini_4:depth=6".
struct NamedArchitecture {
  std::string name, architecture;
};
NamedArchitecture name_and_architecture(const Problem& problem);

}  // namespace aha
