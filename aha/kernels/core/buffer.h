// Memory for kernels: 64-byte aligned, zero at first, never copied by accident.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace aha {

template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(int64_t size) : size_(size) {
    const size_t bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
    data_.reset(static_cast<T*>(std::aligned_alloc(64, bytes > 0 ? bytes : 64)));
    if (!data_) throw std::bad_alloc();
    std::memset(static_cast<void*>(data_.get()), 0, bytes);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }

  // For scratch that lives across calls: contents are lost when it grows.
  T* at_least(int64_t size) {
    if (size > size_) *this = AlignedBuffer(size);
    return data();
  }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

// Made in buffer.cpp only: a copy emitted by a file for AVX-512 must never serve a machine without it.
extern template class AlignedBuffer<float>;
extern template class AlignedBuffer<uint8_t>;
extern template class AlignedBuffer<uint16_t>;
extern template class AlignedBuffer<int32_t>;
extern template class AlignedBuffer<int64_t>;

}  // namespace aha
