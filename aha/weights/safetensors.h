// safetensors: named tensors behind a JSON header, memory-mapped.
//
//   8 bytes   n, little-endian
//   n bytes   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//              "__metadata__": {"key": "text"}}
//   the rest  the tensors, row-major, without a gap, an overlap or a byte left over
//
// The reader trusts nothing: every rule of the format is checked before a single view is handed out, names
// that occur twice are refused, and the memory used beside the mapping is a small multiple of the header,
// which may have at most 100 MB. No tensor is copied.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "aha/weights/tensor_table.h"

namespace aha {

// Views into the mapped file; the table keeps the mapping alive.
TensorTable read_safetensors(const std::string& path);

// The same for bytes at hand. `owner` keeps them alive, `name` opens the messages.
TensorTable safetensors_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                   std::string_view name);

// Whole or not at all. The header is padded so that the data begin at a multiple of 8; tensors lie by
// descending element size, then by name, so that each one is aligned. The same table gives the same bytes.
void write_safetensors(const std::string& path, const TensorTable& table);

}  // namespace aha
