// Runs our image code for a script: one command a line on stdin, tab-separated; one answer a line on stdout.
//
//   decode IN OUT                     pixels of a picture
//   resize IN OUT WIDTH HEIGHT FILTER
//   short-side IN OUT SIZE FILTER
//   crop IN OUT SIZE
//   npy IN OUT                        an array, read and written again
//
// OUT gets the raw RGB bytes; the answer is "WIDTH HEIGHT", or "error MESSAGE" for an input error.
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/image/read.h"
#include "aha/image/resize.h"

namespace {

std::string answer_to(const std::vector<std::string>& words) {
  static const std::map<std::string, aha::Filter> filters = {{"nearest", aha::Filter::kNearest},
                                                             {"bilinear", aha::Filter::kBilinear},
                                                             {"bicubic", aha::Filter::kBicubic}};
  const std::string &verb = words.at(0), &in = words.at(1), &out = words.at(2);
  if (verb == "npy") {
    const aha::NpyArray array = aha::read_npy(in);
    aha::write_npy(out, array.shape, array.values);
    return fmt::format("{} values", array.values.size());
  }
  aha::Image image = aha::read_image(in);
  if (verb == "resize")
    image = aha::resized(image, std::stoi(words.at(3)), std::stoi(words.at(4)), filters.at(words.at(5)));
  else if (verb == "short-side")
    image = aha::resized_short_side(image, std::stoi(words.at(3)), filters.at(words.at(4)));
  else if (verb == "crop")
    image = aha::centre_cropped(image, std::stoi(words.at(3)));
  else if (verb != "decode")
    throw aha::input_error("expected decode, resize, short-side, crop or npy, found '{}'", verb);
  std::ofstream(out, std::ios::binary)
      .write(reinterpret_cast<const char*>(image.rgb.data()), std::ssize(image.rgb));
  return fmt::format("{} {}", image.width, image.height);
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
