// A small Hiera written as SAM 2's exported graph has it must come back, and be what `aha get` makes of it.
#include "aha/networks/sam2_hiera.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/files.h"
#include "aha/networks/catalog.h"
#include "aha/networks/public_models.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/environment.h"
#include "aha/testing/gradient.h"
#include "aha/weights/test_files.h"

namespace aha {
namespace {

using checks::relative;
using testing::HasSubstr;

Hiera exported_hiera() {
  HieraConfig c;
  c.width = 8, c.depths = {1, 1, 1, 1}, c.global_blocks = {2};
  Hiera network(c);
  torch::manual_seed(6);
  const torch::NoGradGuard no_grad;
  for (auto& p : network->parameters())
    p.copy_(torch::randn_like(p) * (p.dim() == 2 ? 1 / std::sqrt(static_cast<double>(p.size(1))) : 0.3));
  freeze(*network);
  return network;
}

// As PyTorch makes them, of this many tokens.
Tensor expanded_places(const Hiera& network, int64_t h, int64_t w) {
  const Tensor coarse = at::upsample_bicubic2d(network->pos_embed, std::vector<int64_t>{h, w}, false);
  return coarse + network->pos_embed_window.repeat({1, 1, h / 8, w / 8});
}

TensorTable exported_graph(const Hiera& network) {
  TensorTable graph;
  graph.source = "encoder.ort";
  for (const auto& item : network->named_parameters()) {
    std::string name = item.key();
    const Tensor value = item.value();
    if (name.starts_with("pos_embed")) continue;
    for (const auto& [from, to] : {std::pair{".mlp.fc1.", ".mlp.layers.0."}, {".mlp.fc2.", ".mlp.layers.1."}})
      if (const auto at = name.find(from); at != std::string::npos) name.replace(at, 9, to);
    if (value.dim() == 2) {
      name.resize(name.size() - std::string(".weight").size());
      const auto dot = name.find('.', 7);  // behind "blocks.N"
      std::string layer = name.substr(dot + 1);
      if (const auto slash = layer.find('.'); slash != std::string::npos) layer[slash] = '/';
      graph.tensors["/image_encoder/trunk/" + name.substr(0, dot) + "/" + layer + "/Transpose_output_0"] =
          view_from_tensor(value.t().contiguous());
    } else {
      graph.tensors["model.image_encoder.trunk." + name] = view_from_tensor(value);
    }
  }
  graph.tensors["/image_encoder/trunk/Transpose_output_0"] =
      view_from_tensor(expanded_places(network, 32, 24));
  // Of other parts of SAM 2, and of the graph.
  graph.tensors["model.image_encoder.neck.convs.3.conv.bias"] = view_from_floats({1}, {1.0f});
  graph.tensors["/image_encoder/trunk/blocks.0/attn/Sqrt_2_output_0"] = view_from_floats({1}, {1.0f});
  graph.tensors["no_mem_embed"] = view_from_floats({1}, {1.0f});
  return graph;
}

TEST(Sam2Hiera, PlacesComeBack) {
  const Hiera network = exported_hiera();
  const auto found = places_from_map(expanded_places(network, 64, 40), 7, 8, "places");
  // Up to the constant that both can have.
  const Tensor constant = (network->pos_embed - found.coarse).mean({2, 3}, true);
  EXPECT_LT(relative(found.coarse + constant, network->pos_embed), 1e-5);
  EXPECT_LT(relative(found.tiles - constant, network->pos_embed_window), 1e-5);
  EXPECT_LT((found.coarse.sum({2, 3}) - found.tiles.sum({2, 3})).abs().max().item<double>(), 1e-4)
      << "the shortest solution";
}

TEST(Sam2Hiera, PlacesOfAnotherKindAreRefused) {
  const Hiera network = exported_hiera();
  const auto refusal = [](const Tensor& places) {
    return checks::message_of([&] { places_from_map(places, 7, 8, "places"); });
  };
  EXPECT_THAT(refusal(torch::rand({1, 8, 32, 32})), HasSubstr("found another one"));
  EXPECT_THAT(refusal(expanded_places(network, 32, 32) + 1e-3 * torch::randn({1, 8, 32, 32})),
              HasSubstr("found another one"));
  EXPECT_THAT(refusal(torch::zeros({1, 8, 8, 32})), HasSubstr("at least 16 tokens a side, found 8 x 32"));
  EXPECT_THAT(refusal(torch::zeros({8, 32, 32})), HasSubstr("places"));
  EXPECT_THAT(refusal(torch::full({1, 8, 32, 32}, NAN)), HasSubstr("found another one"));
}

TEST(Sam2Hiera, TheNetworkComesBack) {
  Hiera network = exported_hiera();
  Hiera found = hiera_from_sam2(exported_graph(network), HieraConfig{.global_blocks = {2}});
  EXPECT_EQ(found->config_json(), network->config_json());
  for (const int size : {64, 224, 90}) {
    const Tensor x = torch::randn({1, 3, size, size});
    Taps expected(network->default_levels()), taps(network->default_levels());
    network->forward(x, &expected), found->forward(x, &taps);
    for (const auto& level : network->default_levels())
      EXPECT_LT(relative(taps.at(level), expected.at(level)), 1e-5) << level << " at " << size;
  }
  auto graph = exported_graph(network);
  graph.tensors.erase("/image_encoder/trunk/blocks.1/attn/qkv/Transpose_output_0");
  EXPECT_THAT(checks::message_of([&] { hiera_from_sam2(graph, {}); }), HasSubstr("blocks.1.attn.qkv.weight"));
  graph.tensors.erase("/image_encoder/trunk/Transpose_output_0");
  EXPECT_THAT(checks::message_of([&] { hiera_from_sam2(graph, {}); }),
              HasSubstr("/image_encoder/trunk/Transpose_output_0"));
}

TEST(Sam2Hiera, IsBroughtAsAnEncoder) {
  const checks::Variable cache("AHA_CACHE", checks::fresh_folder("hiera_cache"));
  EXPECT_THAT(checks::message_of([] { load_network("hiera-tiny"); }), HasSubstr("aha get hiera-tiny"));
  Hiera network = exported_hiera();
  std::vector<test_files::OrtTensor> tensors;
  for (const auto& [name, view] : exported_graph(network).tensors)
    tensors.push_back(
        {name, view.shape, 1, {reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size()}});
  const std::string package = checks::fresh_folder("hiera_package");
  make_directories(package + "/package/dist");
  write_file_atomically(package + "/package/dist/sam2_hiera_tiny_encoder.with_runtime_opt.ort",
                        test_files::ort_file(tensors));
  const auto fetched = get_public_model("hiera-tiny", package, Context());
  EXPECT_FALSE(fetched.was_there);
  EXPECT_EQ(fetched.card.kind, "encoder");
  EXPECT_THAT(fetched.card.provenance["license"].get<std::string>(), HasSubstr("Apache-2.0"));
  EXPECT_TRUE(get_public_model("hiera-tiny", "", Context()).was_there);
  const auto loaded = load_network("hiera-tiny");
  EXPECT_EQ(loaded.info.architecture, "hiera");
  EXPECT_EQ(loaded.info.input.size, 224);
  const Tensor x = torch::randn({1, 3, 64, 64});
  // hiera_tiny's global blocks (5, 7, 9) are none of these four: all have windows.
  HieraConfig config = network->config;
  config.global_blocks = {5, 7, 9};
  Hiera expected(config);
  expected->load_weights(table_from_state(*network));
  EXPECT_LT(relative(loaded.network->forward(x), expected->forward(x)), 1e-5);
  EXPECT_THAT(checks::message_of([] { load_classifier("hiera-tiny", {}, Context()); }),
              HasSubstr("found an encoder"));
}

}  // namespace
}  // namespace aha
