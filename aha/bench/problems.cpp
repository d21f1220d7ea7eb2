#include "aha/bench/problems.h"

#include <filesystem>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/shipped.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

fs::path problems_folder() {
  return shipped({"AHA_PROBLEMS", "problems", "bench/problems", "networks.txt"});
}

}  // namespace

std::vector<Problem> problems_from_text(const std::string& text, const std::string& where, int count,
                                        bool with_long) {
  std::vector<Problem> problems;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string rest = line.substr(0, line.find('#'));
    const bool is_long = rest.starts_with("long ");
    if (is_long) rest.erase(0, 5);
    if (rest.find_first_not_of(" \t\r") == std::string::npos || (is_long && !with_long)) continue;
    std::istringstream words(rest);
    Problem problem;
    for (double size; static_cast<int>(problem.sizes.size()) < count && words >> size;)
      problem.sizes.push_back(size);
    if (static_cast<int>(problem.sizes.size()) < count)
      throw input_error("{}: expected {} numbers, found '{}'", where, count, printable(line));
    std::getline(words >> std::ws, problem.words);
    problems.push_back(std::move(problem));
  }
  return problems;
}

NamedArchitecture name_and_architecture(const Problem& p) {
  const size_t space = p.words.find(' ');
  if (space == std::string::npos)
    throw input_error("problem: expected a name and an architecture, found '{}'", printable(p.words));
  return {p.words.substr(0, space), p.words.substr(p.words.find_first_not_of(' ', space))};
}

std::vector<Problem> problems_of(const std::string& section, int count, bool with_long) {
  const std::string path = (problems_folder() / (section + ".txt")).string();
  return problems_from_text(read_file(path, 1 << 20), path, count, with_long);
}

}  // namespace aha
