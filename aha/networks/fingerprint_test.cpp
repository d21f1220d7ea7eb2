#include "aha/networks/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/files.h"
#include "aha/networks/catalog.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/renamed_weights.h"
#include "aha/weights/safetensors.h"

namespace aha {
namespace {

using checks::fresh_folder;

// A small public architecture with random weights, in files of several kinds.
class FingerprintOf : public ::testing::Test {
 protected:
  FingerprintOf() {
    const auto& architecture = architecture_named("vit_ti_16");
    const auto network = family_of(architecture).make(architecture.config, "test");
    network->initialize(3);
    weights.family = "vit";
    weights.source = "canonical";
    weights.table = table_from_state(network->module());
    known = fingerprint_of(*network);
  }

  std::unique_ptr<Classifier> target(const std::string& name, const TensorTable& table) const {
    const std::string path = folder + "/" + name + ".safetensors";
    write_safetensors(path, table);
    return load_classifier("vit_ti_16:" + path, {}, Context());
  }
  TensorTable rounded(at::ScalarType type) const {
    TensorTable out = renamed_from_canonical(weights, "timm");
    for (auto& [name, view] : out.tensors) view = view_from_tensor(tensor_from_view(view).to(type));
    return out;
  }

  const std::string folder = fresh_folder("fingerprint");
  CanonicalWeights weights;
  Fingerprint known;
};

TEST_F(FingerprintOf, WeightsIsTheSameUnderEveryonesNamesAndInEveryFile) {
  std::set<std::string> files;
  for (const char* dialect : {"timm", "huggingface", "torchvision"}) {
    const auto same = target(dialect, renamed_from_canonical(weights, dialect));
    EXPECT_EQ(fingerprint_of(*same), known) << dialect;
    EXPECT_EQ(same_weights(known, *same), SameWeights::kYes) << dialect;
    files.insert(same->info().sha256);
  }
  EXPECT_EQ(files.size(), 3u) << "the files themselves differ";
}

TEST_F(FingerprintOf, ACopyIn16BitsIsToldFromOtherWeights) {
  for (const auto type : {torch::kFloat16, torch::kBFloat16}) {
    const auto half = target("half", rounded(type));
    EXPECT_EQ(same_weights(known, *half), SameWeights::kRounded);
  }
  TensorTable other = renamed_from_canonical(weights, "timm");
  Tensor changed = tensor_from_view(other.at("head.bias"));
  changed[0] += 1e-6;
  other.tensors["head.bias"] = view_from_tensor(changed);
  EXPECT_EQ(same_weights(known, *target("other", other)), SameWeights::kNo) << "one number differs a little";
}

TEST_F(FingerprintOf, GoesToJsonAndBack) {
  EXPECT_EQ(fingerprint_from_json(nlohmann::json(json_from(known)), "card"), known);
  nlohmann::json typo = json_from(known);
  typo["sha"] = "1";
  EXPECT_THAT(checks::message_of([&] { fingerprint_from_json(typo, "card"); }), ::testing::HasSubstr("sha"));
}

}  // namespace
}  // namespace aha
