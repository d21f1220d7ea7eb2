// Values by key, as many as fit into a number of bytes; the longest unused go first. Safe from several
// threads.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace aha {

template <class Value>
class Lru {
 public:
  explicit Lru(int64_t most_bytes) : most_(most_bytes) {}

  std::optional<Value> find(const std::string& key) {
    const std::lock_guard lock(guard_);
    const auto at = places_.find(key);
    if (at == places_.end()) return std::nullopt;
    entries_.splice(entries_.begin(), entries_, at->second);
    return at->second->value;
  }

  // One that alone is larger than everything allowed is not kept.
  void put(const std::string& key, Value value, int64_t bytes) {
    const std::lock_guard lock(guard_);
    if (const auto at = places_.find(key); at != places_.end()) remove(at->second);
    if (bytes > most_) return;
    entries_.push_front({key, std::move(value), bytes});
    places_[key] = entries_.begin();
    bytes_ += bytes;
    while (bytes_ > most_) remove(std::prev(entries_.end()));
  }

  int64_t bytes() const {
    const std::lock_guard lock(guard_);
    return bytes_;
  }
  size_t size() const {
    const std::lock_guard lock(guard_);
    return entries_.size();
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    int64_t bytes;
  };
  void remove(typename std::list<Entry>::iterator at) {
    bytes_ -= at->bytes;
    places_.erase(at->key);
    entries_.erase(at);
  }

  const int64_t most_;
  mutable std::mutex guard_;
  std::list<Entry> entries_;  // used last first
  std::unordered_map<std::string, typename std::list<Entry>::iterator> places_;
  int64_t bytes_ = 0;
};

}  // namespace aha
