// What the exported image encoder of SAM 2 gives, from our Hiera and the neck that lies in the same file.
//
//   hiera_probe FILE.ort INPUT.npy FOLDER
//
// The input (B, 3, H, W) is normalized already. FOLDER/CHANNELS.raw gets each output in float32: with 256
// channels the third stage and, enlarged, the fourth; with 64 and 32 the second and the first.
#include <cstdio>
#include <fstream>

#include "aha/base/error.h"
#include "aha/base/npy.h"
#include "aha/base/startup.h"
#include "aha/networks/family.h"
#include "aha/networks/sam2_hiera.h"
#include "aha/weights/ort_file.h"

namespace {

void write(const std::string& folder, const aha::Tensor& tensor) {
  const auto flat = tensor.contiguous();
  std::ofstream(folder + "/" + std::to_string(flat.size(1)) + ".raw", std::ios::binary)
      .write(static_cast<const char*>(flat.data_ptr()), static_cast<std::streamsize>(flat.nbytes()));
}

}  // namespace

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  if (argc != 4) {
    std::fprintf(stderr, "usage: hiera_probe FILE.ort INPUT.npy FOLDER\n");
    return 2;
  }
  try {
    aha::start_compute(aha::Context());
    const torch::NoGradGuard no_grad;
    const auto graph = aha::read_ort_file(argv[1]);
    const auto& tiny = aha::architecture_named("hiera_tiny");
    auto network =
        aha::hiera_from_sam2(graph, aha::config_from_json<aha::HieraConfig>(tiny.config, tiny.name));
    const auto array = aha::read_npy(argv[2]);
    aha::Taps stages(network->default_levels());
    network->forward(torch::tensor(array.values).view(array.shape), &stages);

    const auto conv = [&](const aha::Tensor& x, const std::string& name) {
      return torch::conv2d(x, aha::tensor_from_view(graph.at(name + ".weight")),
                           aha::tensor_from_view(graph.at(name + ".bias")));
    };
    const auto level = [&](int stage) {  // its convolutions are counted from the last stage on
      return conv(stages.at("stage." + std::to_string(stage)),
                  "model.image_encoder.neck.convs." + std::to_string(3 - stage) + ".conv");
    };
    const auto enlarged = level(3).repeat_interleave(2, 2).repeat_interleave(2, 3);
    const auto added = aha::tensor_from_view(graph.at("no_mem_embed")).view({1, -1, 1, 1});
    write(argv[3], level(2) + enlarged + added);
    write(argv[3], conv(level(1), "model.sam_mask_decoder.conv_s1"));
    write(argv[3], conv(level(0), "model.sam_mask_decoder.conv_s0"));
  } catch (const aha::Error& error) {
    std::fprintf(stderr, "hiera_probe: %s\n", error.what());
    return error.exit_code();
  }
  return 0;
}
