#include "aha/weights/torch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/testing/checks.h"
#include "aha/weights/names.h"
#include "aha/weights/read_weights.h"
#include "aha/weights/test_files.h"

namespace aha {
namespace {

using namespace test_files;
using testing::HasSubstr;

TensorTable checkpoint_from(const std::string& content) {
  auto owner = shared(content);
  return torch_file_from_bytes(std::as_bytes(std::span(*owner)), owner, "x.pth");
}

std::string checkpoint_refusal(const std::string& content) {
  return checks::message_of([&] { checkpoint_from(content); });
}

const std::string kSix = floats({0, 1, 2, 3, 4, 5});
using Floats = std::vector<float>;

std::string one_tensor(const TensorForm& form) {
  return torch_zip(dict({{"w", tensor(form)}}), {{"0", kSix}});
}

TEST(TorchFile, ReadsAZipAndALegacyFile) {
  for (const bool legacy : {false, true}) {
    const std::string body = dict({{"w", tensor({.legacy = legacy})}});
    const auto table =
        checkpoint_from(legacy ? torch_legacy(body, {{"0", kSix}}) : torch_zip(body, {{"0", kSix}}));
    EXPECT_EQ(table.at("w").shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(floats_from_view(table.at("w")), (Floats{0, 1, 2, 3, 4, 5}));
  }
}

TEST(TorchFile, StridedTensorsBecomeRowMajor) {
  const auto values = [](const TensorForm& form) {
    return floats_from_view(checkpoint_from(one_tensor(form)).at("w"));
  };
  EXPECT_EQ(values({.shape = {3, 2}, .strides = {1, 3}}), (Floats{0, 3, 1, 4, 2, 5}));  // transposed
  EXPECT_EQ(values({.offset = 1, .shape = {2}, .strides = {3}}), (Floats{1, 4}));       // a column
  EXPECT_EQ(values({.offset = 3, .shape = {3}, .strides = {1}}), (Floats{3, 4, 5}));    // a row
  EXPECT_EQ(values({.shape = {1, 6}, .strides = {99, 1}}),
            (Floats{0, 1, 2, 3, 4, 5}));  // a stride that is never taken
  EXPECT_EQ(values({.offset = 5, .shape = {}, .strides = {}}), Floats{5});
  EXPECT_EQ(values({.offset = 6, .shape = {0, 4}, .strides = {4, 1}}), Floats{});
  EXPECT_EQ(values({.shape = {3, 2}, .strides = {0, 1}}),
            (Floats{0, 1, 0, 1, 0, 1}));  // repeats, within bounds
}

TEST(TorchFile, TensorsStayWithinTheirStorage) {
  EXPECT_THAT(checkpoint_refusal(one_tensor({.offset = 1})), HasSubstr("reaches beyond its storage of 6"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.offset = 6, .shape = {1}, .strides = {1}})),
              HasSubstr("reaches beyond"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.shape = {2, 3}, .strides = {4, 1}})),
              HasSubstr("reaches beyond"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.shape = {int64_t{1} << 62, 4}, .strides = {4, 1}})),
              HasSubstr("64 bits"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.shape = {2, 2}, .strides = {INT64_MAX, INT64_MAX}})),
              HasSubstr("beyond"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.offset = INT64_MAX})), HasSubstr("reaches beyond"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.offset = -1})), HasSubstr("natural number"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.shape = {-2, 3}})), HasSubstr("natural number"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.strides = {1}})), HasSubstr("different length"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.shape = {7}, .strides = {0}})), HasSubstr("repeats elements"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.shape = {1'000'000'000}, .strides = {0}})),
              HasSubstr("repeats elements"));
}

TEST(TorchFile, ManyStridedCopiesOfOneStorageAreBounded) {
  std::string entries = "}(";
  const std::string large(400'000, '\0');
  for (int i = 0; i < 30; ++i)
    entries +=
        text(fmt::format("w{}", i)) + tensor({.numel = 100'000, .shape = {1000, 100}, .strides = {1, 1000}});
  EXPECT_THAT(checkpoint_refusal(torch_zip(entries + "u", {{"0", large}})), HasSubstr("repeats elements"));
}

TEST(TorchFile, StoragesAreCheckedAgainstTheirDescription) {
  EXPECT_THAT(checkpoint_refusal(one_tensor({.numel = 7})),
              HasSubstr("expected 7 elements of F32, found 24 bytes"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.numel = INT64_MAX})), HasSubstr("64 bits"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.key = "1"})), HasSubstr("storage '1' is missing"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.key = "../data.pkl"})), HasSubstr("is missing"));
  EXPECT_THAT(checkpoint_refusal(one_tensor({.type = "ComplexFloatStorage"})),
              HasSubstr("unsupported element type"));
}

TEST(TorchFile, AFlippedByteIsNoticed) {
  std::string content = one_tensor({});
  const size_t at = content.find(kSix);
  content[at + 5] ^= 4;
  EXPECT_THAT(checkpoint_refusal(content), HasSubstr("member 'top/data/0' is damaged"));
}

TEST(TorchFile, EveryTruncationIsRefused) {
  const std::string legacy = torch_legacy(dict({{"w", tensor({.legacy = true})}}), {{"0", kSix}});
  for (const std::string& whole : {one_tensor({}), legacy}) {
    ASSERT_EQ(checkpoint_from(whole).tensors.size(), 1u);
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_THAT(checkpoint_refusal(whole.substr(0, size)), HasSubstr("x.pth"));
    EXPECT_THAT(checkpoint_refusal(whole + "x"), HasSubstr("x.pth"));
  }
}

TEST(TorchFile, WrappedStateDictsAreUnwrapped) {
  const std::string inner = dict({{"w", tensor()}});
  const std::string name_space = global("argparse", "Namespace") + ")\x81" + dict({{"lr", "K\1"}}) + "b";
  const auto unwrapped = [&](const std::string& body) {
    return checkpoint_from(torch_zip(body, {{"0", kSix}}));
  };
  EXPECT_EQ(
      unwrapped(dict({{"model", inner}, {"args", name_space}, {"epoch", "K\1"}})).metadata.at("unwrapped"),
      "model");
  EXPECT_EQ(unwrapped(dict({{"student", inner}, {"teacher", inner}})).metadata.at("unwrapped"), "teacher");
  EXPECT_EQ(unwrapped(dict({{"state_dict", dict({{"model", inner}})}})).metadata.at("unwrapped"),
            "state_dict.model");
  EXPECT_EQ(unwrapped(dict({{"state_dict", inner}, {"state_dict_ema", inner}})).metadata.at("unwrapped"),
            "state_dict_ema");
  EXPECT_FALSE(unwrapped(inner).metadata.contains("unwrapped"));
  const auto mixed = unwrapped(dict({{"w", tensor()}, {"epoch", "K\1"}, {"note", text("x")}}));
  EXPECT_EQ(mixed.metadata.at("skipped"), "epoch, note");
  EXPECT_EQ(mixed.tensors.size(), 1u);
}

TEST(TorchFile, ParametersAndOldTensorsAreTensors) {
  const std::string parameter =
      call("torch._utils", "_rebuild_parameter", {tensor(), "\x88", call("collections", "OrderedDict", {})});
  EXPECT_EQ(checkpoint_from(torch_zip(dict({{"w", parameter}}), {{"0", kSix}})).at("w").numel(), 6);
  // Python 2: OrderedDict([["w", tensor]])
  const std::string old = call("collections", "OrderedDict", {"](](" + text("w") + tensor() + "ee"});
  EXPECT_EQ(checkpoint_from(torch_zip(old, {{"0", kSix}})).at("w").numel(), 6);
}

TEST(TorchFile, NothingInAFileIsEverRun) {
  const std::string mark = testing::TempDir() + "/was_run";
  std::filesystem::remove(mark);
  const std::string attack = call("posix", "system", {text("touch " + mark)});
  EXPECT_THAT(checkpoint_refusal(torch_zip(dict({{"w", attack}}), {})),
              HasSubstr("a call of posix.system, which is not run"));
  EXPECT_THAT(checkpoint_refusal(torch_zip(attack, {})),
              HasSubstr("expected a dict of tensors, found a call of posix.system"));
  const auto beside =
      checkpoint_from(torch_zip(dict({{"model", dict({{"w", tensor()}})}, {"args", attack}}), {{"0", kSix}}));
  EXPECT_EQ(beside.tensors.size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(TorchFile, ForeignContentsAreNamed) {
  EXPECT_THAT(checkpoint_refusal(zip({{"a/other", ""}})), HasSubstr("one FOLDER/data.pkl, found 0"));
  EXPECT_THAT(checkpoint_refusal(zip({{"a/data.pkl", ""}, {"b/data.pkl", ""}})), HasSubstr("found 2"));
  EXPECT_THAT(checkpoint_refusal(zip({{"a/data.pkl", ""}, {"a/constants.pkl", ""}})),
              HasSubstr("TorchScript"));
  EXPECT_THAT(checkpoint_refusal(zip({{"a/data.pkl", ""}, {"a/byteorder", "big"}})),
              HasSubstr("little-endian"));
  EXPECT_THAT(checkpoint_refusal(torch_zip("]", {})), HasSubstr("found a list"));
  EXPECT_THAT(checkpoint_refusal(torch_zip("}", {})), HasSubstr("found none in it"));
  EXPECT_THAT(checkpoint_refusal(torch_zip("}K\1" + tensor() + "s", {{"0", kSix}})),
              HasSubstr("texts as the names"));
  EXPECT_THAT(
      checkpoint_refusal(torch_zip("}(" + text("w") + tensor() + text("w") + tensor() + "u", {{"0", kSix}})),
      HasSubstr("occurs twice"));
  EXPECT_THAT(checkpoint_refusal(pickle("K\1")), HasSubstr("found a pickle of an integer"));
}

TEST(TorchFile, LegacyStoragesAreChecked) {
  const std::string body = dict({{"w", tensor({.legacy = true})}});
  EXPECT_THAT(checkpoint_refusal(torch_legacy(body, {})), HasSubstr("storage '0' is missing"));
  EXPECT_THAT(checkpoint_refusal(torch_legacy(body, {{"0", kSix + "1234"}})),
              HasSubstr("expected 6 elements, found 7"));
  EXPECT_THAT(checkpoint_refusal(torch_legacy(body, {{"0", kSix}, {"0", kSix}})), HasSubstr("occurs twice"));
  EXPECT_THAT(checkpoint_refusal(torch_legacy(body, {{"0", kSix}, {"1", kSix}})), HasSubstr("storage '1'"));
  const std::string two =
      dict({{"w", tensor({.legacy = true})}, {"v", tensor({.type = "LongStorage", .legacy = true})}});
  EXPECT_THAT(checkpoint_refusal(torch_legacy(two, {{"0", kSix}})), HasSubstr("described in two ways"));
}

// Files as PyTorch itself writes them, each with its contents as lines "name|type|shape|values" beside it.
constexpr const char* kPythonWriter = R"python(
import argparse, collections, sys
import torch, torchvision
folder = sys.argv[1]
names = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16", torch.int32: "I32", torch.int64: "I64",
         torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64"}
def save(name, what, tensors, **how):
    torch.save(what, f"{folder}/{name}.pth", **how)
    with open(f"{folder}/{name}.txt", "w") as out:
        for key, t in tensors.items():
            t = t.detach()
            out.write(f"{key}|{names[t.dtype]}|{' '.join(map(str, t.shape))}|{' '.join(repr(float(v)) for v in t.flatten().tolist())}\n")
old = dict(_use_new_zipfile_serialization=False)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(5, 6))
sd = net.state_dict()
save("state_dict", sd, sd)
save("state_dict_legacy", sd, sd, **old)
save("protocol_4", sd, sd, pickle_protocol=4)
save("protocol_3_legacy", sd, sd, pickle_protocol=3, **old)
save("one_entry", {"only": torch.arange(3.)}, {"only": torch.arange(3.)})
save("nested", {"model": sd, "args": argparse.Namespace(lr=0.1, name="x"), "epoch": 3, "set": {1, 2}, "bytes": b"ab",
                "optimizer": torch.optim.AdamW(net.parameters()).state_dict()}, sd)
params = dict(net.named_parameters())
save("parameters", params, params)
save("parameters_legacy", params, params, **old)
base = torch.arange(24.).view(2, 3, 4)
views = {"base": base, "t": base.transpose(0, 2), "slice": base[:, 1:, ::2], "expand": base[0, 0].expand(3, 4), "flat": base.view(-1)[5:9],
         "last": base.to(memory_format=torch.contiguous_format), "scalar": torch.tensor(7.), "empty": torch.zeros(0, 3)}
save("views", views, views)
save("views_legacy", views, views, **old)
types = {n: torch.tensor([0, 1, 1, 0]).to(t) for t, n in names.items()}
save("types", types, types)
save("types_legacy", types, types, **old)
vit = torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=64, num_classes=5)
save("torchvision_vit", vit.state_dict(), vit.state_dict())
from torchvision.models.convnext import ConvNeXt, CNBlockConfig
cn = ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, 24, 1), CNBlockConfig(24, 32, 2), CNBlockConfig(32, None, 1)], num_classes=5)
save("torchvision_convnext", {"model": cn.state_dict()}, cn.state_dict())
)python";

class PythonFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = testing::TempDir() + "/torch_files";
    make_directories(folder_);
    const char* chosen = std::getenv("AHA_PYTHON");
    const std::string python = chosen ? chosen : "/usr/bin/python3";
    write_file_atomically(folder_ + "/writer.py", kPythonWriter);
    written_ =
        std::system(fmt::format("'{}' '{}/writer.py' '{}' >'{}/log' 2>&1", python, folder_, folder_, folder_)
                        .c_str()) == 0;
  }
  void SetUp() override {
    if (!written_)
      GTEST_SKIP() << "no Python with torch and torchvision here (AHA_PYTHON names one): "
                   << read_file(folder_ + "/log");
  }
  static inline std::string folder_;
  static inline bool written_ = false;
};

TEST_F(PythonFiles, AreReadValueByValue) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() != ".pth") continue;
    SCOPED_TRACE(entry.path().filename());
    ++files;
    const TensorTable table = read_weights(entry.path());
    std::ifstream lines(entry.path().string().substr(0, entry.path().string().size() - 4) + ".txt");
    size_t tensors = 0;
    for (std::string name, type, shape, values;
         std::getline(lines, name, '|') && std::getline(lines, type, '|') &&
         std::getline(lines, shape, '|') && std::getline(lines, values);
         ++tensors) {
      const TensorView& view = table.at(name);
      EXPECT_EQ(name_of(view.dtype), type) << name;
      std::istringstream sides(shape), numbers(values);
      EXPECT_EQ(view.shape, std::vector<int64_t>(std::istream_iterator<int64_t>(sides), {})) << name;
      std::vector<float> expected;
      for (double value; numbers >> value;) expected.push_back(static_cast<float>(value));
      EXPECT_EQ(floats_from_view(view), expected) << name;
    }
    EXPECT_EQ(table.tensors.size(), tensors);
    EXPECT_GT(tensors, 0u);
  }
  EXPECT_EQ(files, 14);
}

TEST_F(PythonFiles, OfTorchvisionBecomeCanonical) {
  const auto vit = canonical_from_any(read_weights(folder_ + "/torchvision_vit.pth"));
  EXPECT_EQ(vit.family, "vit");
  EXPECT_EQ(vit.source, "torchvision");
  EXPECT_EQ(vit.table.tensors.size(), 8u + 12 * 2);
  EXPECT_EQ(vit.table.at("blocks.1.attn.qkv.weight").shape, (std::vector<int64_t>{48, 16}));
  const auto convnext = canonical_from_any(read_weights(folder_ + "/torchvision_convnext.pth"));
  EXPECT_EQ(convnext.family, "convnext");
  EXPECT_EQ(convnext.table.at("stages.2.blocks.1.gamma").shape, std::vector<int64_t>{24});
  EXPECT_EQ(convnext.table.metadata.at("unwrapped"), "model");
}

}  // namespace
}  // namespace aha
