// The initializers of an ONNX Runtime model file (.ort), by name.
//
// The file is a flatbuffer, little-endian, "ORTM" at byte 4: a table begins with the distance to a list that
// says where its fields are; texts, lists and other tables are reached by offsets. Read are
//
//   session.model (field 1) -> graph (7) -> initializers (0) -> name (0), dims (2), data type (3), raw data
//   (4)
//
// and nothing else: no operator of the graph is looked at. ONNX's optimizer may have changed tensors (a
// linear layer's weight is stored transposed, under the name of a node).
//
// A file may come from anywhere: every offset is checked against the file, names that occur twice are
// refused, no tensor is copied, and all of them together are not larger than the file. Initializers whose
// numbers lie in another file, and texts, are refused.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "aha/weights/tensor_table.h"

namespace aha {

bool is_ort_file(std::span<const std::byte> bytes);

// Views into the mapped file; the table keeps the mapping alive.
TensorTable read_ort_file(const std::string& path);

// The same for bytes at hand. `owner` keeps them alive, `name` opens the messages.
TensorTable ort_file_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                std::string_view name);

}  // namespace aha
