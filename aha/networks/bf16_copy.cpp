#include "aha/networks/bf16_copy.h"

#include "aha/kernels/core/cpu.h"
#include "aha/networks/network_classifier.h"

namespace aha {

std::unique_ptr<Classifier> bf16_copy(Classifier& target, const Context& context) {
  if (context.device.cuda || context.precision == Precision::kBf16 || best_isa() < Isa::kAvx512Bf16)
    return nullptr;
  auto* ours = dynamic_cast<NetworkClassifier*>(&target);
  if (!ours || !ours->engine_memory()) return nullptr;
  return std::make_unique<NetworkClassifier>(ours->shared_network(), ours->info(), Precision::kBf16);
}

}  // namespace aha
