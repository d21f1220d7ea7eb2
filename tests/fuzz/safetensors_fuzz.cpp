// Any bytes as a safetensors file: a table or an input error, and every view of a table can be read and renamed.
#include <cstddef>
#include <cstdint>
#include <span>

#include "aha/base/error.h"
#include "aha/weights/names.h"
#include "aha/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto table = aha::safetensors_from_bytes(std::as_bytes(std::span(data, size)), nullptr, "fuzz");
    for (const auto& [name, view] : table.tensors) aha::floats_from_view(view);
    aha::canonical_from_any(table);
  } catch (const aha::Error&) {
  }
  return 0;
}
