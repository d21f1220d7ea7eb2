// Runs our metrics for a script: one command per line on stdin, tab-separated; one answer a line on stdout.
//
//   impute IMAGE MISSING OUT      .npy files (C, H, W), (H, W), (C, H, W)
//
// The answer is "N seconds", or "error MESSAGE" for an input error.
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/base/timer.h"
#include "aha/metrics/linear_imputation.h"

namespace {

std::string answer_to(const std::vector<std::string>& words) {
  if (words.at(0) != "impute") throw aha::input_error("expected impute, found '{}'", words.at(0));
  aha::NpyArray image = aha::read_npy(words.at(1));
  const aha::NpyArray missing = aha::read_npy(words.at(2));
  const std::vector<uint8_t> mask(missing.values.begin(), missing.values.end());
  const aha::Timer timer;
  aha::impute(aha::imputation_grid(missing.shape.at(0), missing.shape.at(1)), mask, image.values);
  const double seconds = timer.seconds();
  aha::write_npy(words.at(3), image.shape, image.values);
  return fmt::format("{:.3f} seconds", seconds);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> words;
    std::istringstream stream(line);
    for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
    try {
      std::cout << answer_to(words) << std::endl;
    } catch (const aha::Error& error) {
      std::cout << "error " << error.what() << std::endl;
    }
  }
}
