// Writes what the scripts here work on: a tiny model directory with random weights, two good pictures and two broken ones.
#include <cstdio>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/rng.h"
#include "aha/base/startup.h"
#include "aha/image/png.h"
#include "aha/models/catalog.h"

namespace {

void write_tiny_model(const std::string& folder) {
  aha::VitConfig config;
  config.image_size = 32;
  config.patch = 8;
  config.width = 64;
  config.depth = 2;
  config.heads = 1;
  config.mlp_hidden = 128;
  config.classes = 5;
  aha::Vit network(config);
  network->initialise(1);
  network->head->weight.set_data(network->head->weight * 20);  // so that classes differ
  aha::ModelCard card;
  card.summary = "a tiny transformer with random weights, for tests";
  card.classes = {"ant", "bee", "cat", "dog", "elk"};
  card.input.size = 32;
  card.input.resize = 32;
  aha::save_classifier(folder, network, card);
}

void write_pictures(const std::string& folder) {
  aha::Image picture(48, 40);
  aha::Rng rng(1);
  for (auto& value : picture.rgb) value = static_cast<uint8_t>(rng.below(256));
  const std::string png = aha::png_bytes(picture);
  aha::write_file_atomically(folder + "/good/a.png", png);
  aha::write_file_atomically(folder + "/good/b.jpg", png);  // a PNG by another name: the content decides
  aha::write_file_atomically(folder + "/broken/broken.png", png.substr(0, png.size() / 2));
  aha::write_file_atomically(folder + "/broken/broken.jpg", std::string("\xff\xd8\xff\xe0\x00\x10JFIF", 10));
}

}  // namespace

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  try {
    for (const char* part : {"/tiny", "/good", "/broken"}) aha::make_directories(folder + part);
    write_tiny_model(folder + "/tiny");
    write_pictures(folder);
  } catch (const aha::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
