// Any bytes as a safetensors file: a table or an input error, and every view of a table can be read and
// renamed.
#include <cstddef>
#include <cstdint>
#include <span>

#include "aha/base/error.h"
#include "aha/weights/names.h"
#include "aha/weights/safetensors.h"
#include "aha/weights/test_files.h"
#include "tests/fuzz/seeds.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using aha::test_files::safetensors;
  start_from(
      argc, argv,
      {safetensors("{}"),
       safetensors(
           R"({"__metadata__":{"aha.family":"vit","aha.source":"timm"},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})",
           "abcd"),
       safetensors(
           R"({"b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]},"e":{"dtype":"I64","shape":[0,3],"data_offsets":[8,8]},)"
           R"("f":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}  )",
           "123456789"),
       safetensors(R"({"patch_embed.proj.weight":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                   R"("blocks.0.attn.qkv.bias":{"dtype":"U8","shape":[3],"data_offsets":[2,5]},)"
                   R"("blocks.0.attn.qkv.bias_mask":{"dtype":"U8","shape":[3],"data_offsets":[5,8]},)"
                   R"("blocks.0.attn.qkv.weight":{"dtype":"U8","shape":[3,1],"data_offsets":[8,11]},)"
                   R"("storage_tokens":{"dtype":"U8","shape":[1],"data_offsets":[11,12]}})",
                   "123456789012")});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto table = aha::safetensors_from_bytes(std::as_bytes(std::span(data, size)), nullptr, "fuzz");
    for (const auto& [name, view] : table.tensors) aha::floats_from_view(view);
    aha::canonical_from_any(table);
  } catch (const aha::Error&) {
  }
  return 0;
}
