// Any bytes as a pickle, as a legacy PyTorch file and as the pickle inside a zip: a tree or a table, or an
// input error.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "aha/base/error.h"
#include "aha/weights/test_files.h"
#include "aha/weights/torch_file.h"
#include "aha/weights/unpickler.h"
#include "tests/fuzz/seeds.h"

namespace {

template <class Read>
void try_to(Read read) {
  try {
    read();
  } catch (const aha::Error&) {
  }
}

void read_table(const std::string& content) {
  const auto owner = aha::test_files::shared(content);
  const auto table = aha::torch_file_from_bytes(std::as_bytes(std::span(*owner)), owner, "fuzz");
  for (const auto& [name, view] : table.tensors) aha::floats_from_view(view);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace aha::test_files;
  const std::string values(24, '\1');
  const std::string legacy = dict({{"w", tensor({.legacy = true})}});
  const std::string name_space = global("argparse", "Namespace") + ")\x81" + dict({{"lr", "K\1"}}) + "b";
  start_from(argc, argv,
             {pickle(dict({{"w", tensor()}})),
              pickle(dict({{"model", dict({{"w", tensor({.shape = {3, 2}, .strides = {1, 3}})}})},
                           {"args", name_space}})),
              pickle("](K\1M\1\1N\x88G12345678eq\1h\1\x86"), "\x80\x04\x8c\x05torch\x8c\x04Size\x93)R\x94.",
              torch_zip(dict({{"w", tensor()}}), {{"0", values}}), torch_legacy(legacy, {{"0", values}}),
              pickle(legacy) + pickle("](" + text("0") + "e") + u64(6) + values});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aha::test_files;
  const std::string content(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    const auto tree = aha::tree_from_pickle(std::as_bytes(std::span(data, size)), "fuzz");
    aha::describe(tree.root);
  });
  try_to([&] { read_table(content); });
  try_to([&] { read_table(zip({{"top/data.pkl", content}, {"top/data/0", std::string(24, '\1')}})); });
  static const std::string opening = torch_legacy("", {}).substr(0, torch_legacy("", {}).find(pickle("")));
  try_to([&] { read_table(opening + content); });
  return 0;
}
