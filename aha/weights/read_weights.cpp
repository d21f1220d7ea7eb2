#include "aha/weights/read_weights.h"

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/weights/ort_file.h"
#include "aha/weights/safetensors.h"
#include "aha/weights/torch_file.h"

namespace aha {

TensorTable read_weights(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  const auto bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // A header length can begin with any byte, also with those of the other formats, so the brace decides
  // first.
  if (text.size() > 8 && text[8] == '{') return safetensors_from_bytes(bytes, file, path);
  if (text.starts_with("PK") || text.starts_with('\x80')) return torch_file_from_bytes(bytes, file, path);
  if (is_ort_file(bytes)) return ort_file_from_bytes(bytes, file, path);
  const char* found = text.empty() ? "an empty file"
                      : text.starts_with("version https://git-lfs")
                          ? "a Git LFS pointer: the weights were not fetched"
                      : text.starts_with('<') ? "a web page"
                                              : "something else";
  throw input_error("{}: expected weights (safetensors, or a PyTorch .pth/.pt), found {}",
                    printable(path, 300), found);
}

}  // namespace aha
