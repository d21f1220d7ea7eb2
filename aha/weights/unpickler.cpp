#include "aha/weights/unpickler.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "aha/base/byte_reader.h"
#include "aha/base/error.h"

namespace aha {
namespace {

// The names of Python's pickletools.
// clang-format off
enum Op : uint8_t {
  kMark = '(', kStop = '.', kPop = '0', kPopMark = '1', kDup = '2', kBinFloat = 'G', kBinInt = 'J',
  kBinInt1 = 'K', kBinInt2 = 'M', kNone = 'N', kBinPersId = 'Q', kReduce = 'R', kBinString = 'T',
  kShortBinString = 'U', kBinUnicode = 'X', kAppend = 'a', kBuild = 'b', kGlobal = 'c', kAppends = 'e',
  kBinGet = 'h', kLongBinGet = 'j', kBinPut = 'q', kLongBinPut = 'r', kSetItem = 's', kTuple = 't',
  kSetItems = 'u', kEmptyDict = '}', kEmptyList = ']', kEmptyTuple = ')', kBinBytes = 'B',
  kShortBinBytes = 'C', kProto = 0x80, kNewObj = 0x81, kTuple1 = 0x85, kTuple2 = 0x86, kTuple3 = 0x87,
  kNewTrue = 0x88, kNewFalse = 0x89, kLong1 = 0x8a, kShortBinUnicode = 0x8c, kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e, kEmptySet = 0x8f, kAddItems = 0x90, kFrozenSet = 0x91, kNewObjEx = 0x92,
  kStackGlobal = 0x93, kMemoize = 0x94, kFrame = 0x95,
};
// clang-format on

class Unpickler {
 public:
  Unpickler(std::span<const std::byte> bytes, std::string_view name, const PickleLimits& limits)
      : limits_(limits),
        where_(fmt::format("{}: the pickle", printable(name, 300))),
        reader_(bytes.first(std::min(bytes.size(), limits.bytes)), where_) {}

  PickleTree run() {
    if (reader_.u8() != kProto) throw refused("does not begin with its protocol number");
    if (const int protocol = reader_.u8(); protocol < 2 || protocol > 4)
      throw refused("expected protocol 2, 3 or 4, found {}", protocol);
    for (;;) {
      const uint8_t op = reader_.u8();
      if (op == kStop) break;
      step(op);
    }
    tree_.root = pop();
    if (!stack_.empty() || !marks_.empty()) throw refused("ends with values left over");
    tree_.consumed = reader_.position();
    return std::move(tree_);
  }

 private:
  // One line per opcode.
  // clang-format off
  void step(uint8_t op) {
    switch (op) {
      case kFrame: reader_.u64(); return;  // a hint for streams
      case kNone: push(PickleNone{}); return;
      case kNewTrue: push(true); return;
      case kNewFalse: push(false); return;
      case kBinInt: push(int64_t{reader_.number<int32_t>()}); return;
      case kBinInt1: push(int64_t{reader_.u8()}); return;
      case kBinInt2: push(int64_t{reader_.u16()}); return;
      case kLong1: push_long(reader_.text(reader_.u8())); return;
      case kBinFloat: push(std::bit_cast<double>(__builtin_bswap64(reader_.u64()))); return;  // big-endian
      case kShortBinString:  // Python 2's str: the names of old files
      case kShortBinUnicode: push(text(reader_.u8())); return;
      case kBinString:
      case kBinUnicode: push(text(reader_.u32())); return;
      case kBinUnicode8: push(text(reader_.u64())); return;
      case kShortBinBytes: push(PickleBytes{text(reader_.u8())}); return;
      case kBinBytes: push(PickleBytes{text(reader_.u32())}); return;
      case kBinBytes8: push(PickleBytes{text(reader_.u64())}); return;

      case kEmptyDict: push(PickleDict{}); return;
      case kEmptyList: push(PickleList{}); return;
      case kEmptySet: push(PickleSet{}); return;
      case kEmptyTuple: push(PickleTuple{}); return;
      case kTuple: push(PickleTuple{counted(pop_to_mark())}); return;
      case kTuple1: push(PickleTuple{counted(pop_last(1))}); return;
      case kTuple2: push(PickleTuple{counted(pop_last(2))}); return;
      case kTuple3: push(PickleTuple{counted(pop_last(3))}); return;
      case kFrozenSet: push(PickleSet{counted(pop_to_mark())}); return;
      case kAppend: append(pop_last(1)); return;
      case kAppends: append(pop_to_mark()); return;
      case kAddItems: add(pop_to_mark()); return;
      case kSetItem: set_items(pop_last(2)); return;
      case kSetItems: set_items(pop_to_mark()); return;

      case kMark: marks_.push_back(stack_.size()); check_stack(); return;
      case kPop: pop(); return;
      case kPopMark: pop_to_mark(); return;
      case kDup: push_again(top()); return;
      case kBinPut: memo_[reader_.u8()] = top(); return;
      case kLongBinPut: memo_[reader_.u32()] = top(); return;
      case kMemoize: memo_[static_cast<uint32_t>(memo_.size())] = top(); return;
      case kBinGet: push_again(remembered(reader_.u8())); return;
      case kLongBinGet: push_again(remembered(reader_.u32())); return;

      case kGlobal: {
        const auto module = reader_.line();
        push_global(module, reader_.line());
        return;
      }
      case kStackGlobal: push_stack_global(); return;
      case kBinPersId: push(PicklePersistent{pop()}); return;
      case kReduce:
      case kNewObj: push_object(pop_last(2)); return;
      case kNewObjEx: push_object(pop_last(3)); return;
      case kBuild: build(pop()); return;
      default: throw refused("opcode {:#04x} at byte {} is not data", op, reader_.position() - 1);
    }
  }
  // clang-format on

  template <class... Args>
  Error refused(fmt::format_string<Args...> format, Args&&... args) const {
    return input_error("{} {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

  void check_stack() const {
    if (stack_.size() + marks_.size() > limits_.stack)
      throw refused("needs a stack of more than {} values", limits_.stack);
  }

  template <class T>
  void push(T&& data) {
    if (tree_.values.size() >= limits_.values) throw refused("has more than {} values", limits_.values);
    push_again(&tree_.values.emplace_back(PickleValue{std::forward<T>(data)}));
  }

  void push_again(PickleValue* value) {
    stack_.push_back(value);
    check_stack();
  }

  // A mark fences off what lies below it: only operations that take the mark may reach further down.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleValue* top() const {
    if (stack_.size() <= floor())
      throw refused("takes a value from an empty stack before byte {}", reader_.position());
    return stack_.back();
  }

  PickleValue* pop() {
    PickleValue* value = top();
    stack_.pop_back();
    return value;
  }

  std::vector<PickleRef> pop_last(size_t count) {
    if (stack_.size() - floor() < count)
      throw refused("takes a value from an empty stack before byte {}", reader_.position());
    std::vector<PickleRef> out(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return out;
  }

  std::vector<PickleRef> pop_to_mark() {
    if (marks_.empty())
      throw refused("looks for a mark that is not there before byte {}", reader_.position());
    auto out = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return out;
  }

  std::vector<PickleRef> counted(std::vector<PickleRef> items) {
    references_ += items.size();
    if (references_ > limits_.references) throw refused("has more than {} references", limits_.references);
    return items;
  }

  std::string text(uint64_t size) {
    if (size > limits_.text_bytes)
      throw refused("expected texts of at most {} bytes, found one of {}", limits_.text_bytes, size);
    return std::string(reader_.text(size));
  }

  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return push(PickleLong{std::string(bytes)});
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
    const bool negative = !bytes.empty() && (bytes.back() & 0x80);
    if (negative && bytes.size() < 8) value |= ~uint64_t{0} << (8 * bytes.size());
    push(static_cast<int64_t>(value));
  }

  PickleValue* remembered(uint32_t index) const {
    const auto found = memo_.find(index);
    if (found == memo_.end()) throw refused("recalls memo {}, which was never put", index);
    return found->second;
  }

  void push_global(std::string_view module, std::string_view name) {
    if (module.size() > limits_.text_bytes || name.size() > limits_.text_bytes)
      throw refused("has a global with an endless name");
    push(PickleGlobal{std::string(module), std::string(name)});
  }

  void push_stack_global() {
    const auto* name = pop()->get<std::string>();
    const auto* module = pop()->get<std::string>();
    if (!name || !module) throw refused("names a global by something that is no text");
    push_global(*module, *name);
  }

  // NEWOBJ_EX brings a third part, the keyword arguments, which no use of the tree needs.
  void push_object(const std::vector<PickleRef>& parts) {
    if (!parts[1]->get<PickleTuple>()) throw refused("makes a call without a tuple of arguments");
    push(PickleObject{parts[0], parts[1], nullptr, {}, {}});
  }

  void append(std::vector<PickleRef> items) {
    auto& target = top()->data;
    auto* list = std::get_if<PickleList>(&target);
    auto* object = std::get_if<PickleObject>(&target);
    if (!list && !object) throw refused("appends to {}", describe(top()));
    extend(list ? list->items : object->items, std::move(items));
  }

  void add(std::vector<PickleRef> items) {
    auto* set = std::get_if<PickleSet>(&top()->data);
    if (!set) throw refused("adds to {}", describe(top()));
    extend(set->items, std::move(items));
  }

  void extend(std::vector<PickleRef>& target, std::vector<PickleRef> items) {
    items = counted(std::move(items));
    target.insert(target.end(), items.begin(), items.end());
  }

  void set_items(std::vector<PickleRef> items) {
    if (items.size() % 2) throw refused("sets a key without a value");
    auto& target = top()->data;
    auto* dict = std::get_if<PickleDict>(&target);
    auto* object = std::get_if<PickleObject>(&target);
    if (!dict && !object) throw refused("sets items of {}", describe(top()));
    auto& entries = dict ? dict->items : object->entries;
    items = counted(std::move(items));
    for (size_t i = 0; i < items.size(); i += 2) entries.emplace_back(items[i], items[i + 1]);
  }

  void build(PickleRef state) {
    auto* object = std::get_if<PickleObject>(&top()->data);
    if (!object) throw refused("sets the state of {}", describe(top()));
    object->state = state;
  }

  PickleLimits limits_;
  std::string where_;
  ByteReader reader_;
  PickleTree tree_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // stack sizes
  std::unordered_map<uint32_t, PickleValue*> memo_;
  size_t references_ = 0;
};

}  // namespace

std::string describe(PickleRef value) {
  // In the order of PickleValue's alternatives.
  static constexpr const char* kKinds[] = {"None",   "a bool",   "an integer", "a number",  "a long integer",
                                           "text",   "bytes",    "a tuple",    "a list",    "a set",
                                           "a dict", "a global", "a storage",  "a call of "};
  static_assert(std::size(kKinds) == std::variant_size_v<decltype(PickleValue::data)>);
  if (const auto* global = value->get<PickleGlobal>())
    return fmt::format("{}.{}", printable(global->module), printable(global->name));
  std::string kind = kKinds[value->data.index()];
  const auto* object = value->get<PickleObject>();
  if (!object) return kind;
  return kind + (object->callee->get<PickleGlobal>() ? describe(object->callee) : "something computed");
}

PickleTree tree_from_pickle(std::span<const std::byte> bytes, std::string_view name,
                            const PickleLimits& limits) {
  return Unpickler(bytes, name, limits).run();
}

}  // namespace aha
