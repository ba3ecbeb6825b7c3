// Slice: bytes that somebody else has.

#ifndef TERRACE_LEVELDB_SLICE_H
#define TERRACE_LEVELDB_SLICE_H

#include <cassert>
#include <cstddef>
#include <cstring>
#include <string>

#include "leveldb/export.h"

namespace leveldb {

// A pointer and a length. Whoever has the bytes must keep them as long as the slice is used.
class LEVELDB_EXPORT Slice {
 public:
  // The empty slice.
  Slice() : data_(""), size_(0) {}
  Slice(const char* data, size_t size) : data_(data), size_(size) {}
  // Conversions are implicit, so that keys can be passed as they are.
  Slice(const std::string& text) : data_(text.data()), size_(text.size()) {}
  Slice(const char* text) : data_(text), size_(std::strlen(text)) {}

  Slice(const Slice&) = default;
  Slice& operator=(const Slice&) = default;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The byte at `n`, which must be below size().
  char operator[](size_t n) const {
    assert(n < size_);
    return data_[n];
  }

  void clear() { *this = Slice(); }

  // Drops the first `n` bytes, of which there must be as many.
  void remove_prefix(size_t n) {
    assert(n <= size_);
    data_ += n;
    size_ -= n;
  }

  // A copy.
  std::string ToString() const { return std::string(data_, size_); }

  // Below, at or above zero, as the slice lies before, at or behind `other` in bytewise order.
  int compare(const Slice& other) const {
    const size_t shared = size_ < other.size_ ? size_ : other.size_;
    const int order = shared == 0 ? 0 : std::memcmp(data_, other.data_, shared);
    if (order != 0) return order;
    return size_ < other.size_ ? -1 : size_ > other.size_ ? 1 : 0;
  }

  bool starts_with(const Slice& prefix) const {
    return size_ >= prefix.size_ && Slice(data_, prefix.size_).compare(prefix) == 0;
  }

 private:
  const char* data_;
  size_t size_;
};

inline bool operator==(const Slice& a, const Slice& b) { return a.size() == b.size() && a.compare(b) == 0; }
inline bool operator!=(const Slice& a, const Slice& b) { return !(a == b); }

}  // namespace leveldb

#endif
