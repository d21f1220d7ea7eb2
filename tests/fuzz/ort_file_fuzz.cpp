// Any bytes as an ONNX Runtime model: a table or an input error, and every view of a table can be read.
#include <cstddef>
#include <cstdint>
#include <span>

#include "aha/base/error.h"
#include "aha/weights/ort_file.h"
#include "aha/weights/test_files.h"
#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace aha::test_files;
  start_from(
      argc, argv,
      {ort_file({}), ort_file({{"w", {2, 1}, 1, floats({1, 2})}}),
       ort_file({{"model.fc.bias", {3}, 10, "abcdef"}, {"scalar", {}, 7, u64(5)}, {"none", {0, 3}, 9, ""}})});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto table = aha::ort_file_from_bytes(std::as_bytes(std::span(data, size)), nullptr, "fuzz");
    for (const auto& [name, view] : table.tensors) aha::floats_from_view(view);
  } catch (const aha::Error&) {
  }
  return 0;
}
