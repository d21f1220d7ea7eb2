// State dicts that Python's torch.save wrote (.pth, .pt, .bin), read without running anything of them.
//
// Two containers: the zip of PyTorch 1.6 and later (data.pkl names the tensors, data/KEY holds each storage;
// CRC-32 checked) and the older one of concatenated pickles with the storages behind them (no check sum
// exists). The pickle is read by unpickler.h; this file gives a meaning to exactly these of its globals:
//
//   collections.OrderedDict        a dict
//   torch._utils._rebuild_tensor_v2, _rebuild_tensor, _rebuild_parameter, _rebuild_parameter_with_state
//   torch.FloatStorage and the nine other storage types; torch.Size
//
// Checkpoints wrap the weights in a dict beside other things; the first of these entries that holds a dict is
// followed, also when nested: state_dict_ema, state_dict, model, teacher. metadata["unwrapped"] tells the way
// ("model"), metadata["skipped"] names the entries of the state dict that are no tensors.
//
// A contiguous tensor is a view of the file, of any alignment; one with other strides is copied to row-major
// order.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "aha/weights/tensor_table.h"

namespace aha {

// `owner` keeps the bytes alive, `name` opens the messages.
TensorTable torch_file_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                  std::string_view name);

}  // namespace aha
