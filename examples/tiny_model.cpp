// Makes what the examples are tried on: OUT/target (a model directory of a tiny ConvNeXt with seeded
// weights), OUT/explainer (an untrained one for it), OUT/image.png.
#include "aha/tensor/torch.h"

#include "aha/base/files.h"
#include "aha/base/startup.h"
#include "aha/image/png.h"
#include "aha/networks/catalog.h"
#include "aha/train/explainer_trainer.h"

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  if (argc != 2) return 2;
  const std::string out = argv[1];
  aha::make_directories(out);
  const auto& architecture = aha::architecture_named("convnext_mini");
  const auto& family = aha::family_of(architecture);
  auto config = family.changed(architecture.config, "image_size=16:depths=1,1:widths=4,8", "tiny");
  config["classes"] = 3;
  const auto network = family.make(config, "tiny");
  network->initialize(1);
  network->set_layer_scale(0.5);
  aha::ModelCard card;
  card.summary = "a tiny network for tests";
  card.input.size = card.input.resize = network->image_size();
  card.classes = {"one", "two", "three"};
  aha::save_classifier(out + "/target", *network, card);

  aha::Context context;
  const auto target = aha::load_classifier(out + "/target", {}, context);
  const auto explainer = aha::make_explainer(*target, {}, context);
  aha::ModelCard explained;
  explained.summary = "an untrained explainer for tests";
  explained.input = card.input;
  explained.classes = card.classes;
  explained.target = aha::ModelCard::TargetPart{"target", "convnext", target->info().sha256};
  aha::save_explainer(out + "/explainer", *explainer, explained);

  torch::manual_seed(1);
  aha::write_png(out + "/image.png", aha::image_from_tensor(torch::rand({3, 20, 24})));
  return 0;
}
