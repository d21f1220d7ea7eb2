// Reads a Python pickle without running anything.
//
// A pickle is a program for a small stack machine: it pushes numbers, texts and containers, and it may name a
// function and have it called. This reader keeps the first half and refuses the second by construction: a
// global is only its two names, and a call is only a node that remembers what the file asked for
// (`PickleObject`). There is no way from a file to code. Whoever uses the tree decides which nodes mean
// something (torch_file.cpp: tensors); all others stay inert, so that an argparse.Namespace in a checkpoint
// does not stand in the way of the weights beside it.
//
// Protocols 2 to 4, with the opcodes that pickle writes for data; the textual ones of protocols 0 and 1,
// extension registries and out-of-band buffers are refused. All nodes live in one flat store and point into
// it: cycles and a nesting a million deep cost no recursion, neither here nor when the tree is destroyed.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace aha {

struct PickleValue;
using PickleRef = const PickleValue*;

struct PickleNone {};
struct PickleLong {  // an integer beyond 64 bits
  std::string little_endian;
};
struct PickleBytes {
  std::string content;
};
struct PickleTuple {
  std::vector<PickleRef> items;
};
struct PickleList {
  std::vector<PickleRef> items;
};
struct PickleSet {
  std::vector<PickleRef> items;
};
struct PickleDict {
  std::vector<std::pair<PickleRef, PickleRef>> items;  // in file order
};
struct PickleGlobal {
  std::string module, name;
};
struct PicklePersistent {  // a thing stored outside the pickle
  PickleRef id = nullptr;
};
// What a call, a construction or a later change of such an object asked for. Nothing of it has happened.
struct PickleObject {
  PickleRef callee = nullptr, arguments = nullptr;
  PickleRef state = nullptr;                             // of BUILD, null without one
  std::vector<std::pair<PickleRef, PickleRef>> entries;  // set by item: how an OrderedDict is filled
  std::vector<PickleRef> items;                          // appended
};

struct PickleValue {
  std::variant<PickleNone, bool, int64_t, double, PickleLong, std::string, PickleBytes, PickleTuple,
               PickleList, PickleSet, PickleDict, PickleGlobal, PicklePersistent, PickleObject>
      data;

  template <class T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
};

// "a dict", "text", "a call of posix.system": for messages.
std::string describe(PickleRef value);

struct PickleLimits {
  size_t bytes = size_t{64} << 20;  // of the pickle
  size_t values = 2'000'000;        // nodes made
  size_t references = 8'000'000;    // from containers to nodes
  size_t stack = 1'000'000;         // values and marks waiting
  size_t text_bytes = 1 << 20;      // of one text, name or byte string
};

struct PickleTree {
  std::deque<PickleValue> values;  // owns every node; addresses are stable
  PickleRef root = nullptr;
  size_t consumed = 0;  // bytes up to and with STOP: pickles may follow one another
};

PickleTree tree_from_pickle(std::span<const std::byte> bytes, std::string_view name,
                            const PickleLimits& limits = {});

}  // namespace aha
