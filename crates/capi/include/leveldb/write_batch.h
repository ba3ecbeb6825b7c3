// WriteBatch: a group of writes that take effect together.

#ifndef TERRACE_LEVELDB_WRITE_BATCH_H
#define TERRACE_LEVELDB_WRITE_BATCH_H

#include <cstdint>
#include <string>

#include "leveldb/export.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

// Operations in their order; later ones on a key win. Several threads may read it; only one may change it.
class LEVELDB_EXPORT WriteBatch {
 public:
  // Is told of each operation by Iterate().
  class LEVELDB_EXPORT Handler {
   public:
    virtual ~Handler() = default;
    virtual void Put(const Slice& key, const Slice& value) = 0;
    virtual void Delete(const Slice& key) = 0;
  };

  WriteBatch() { Clear(); }
  WriteBatch(const WriteBatch&) = default;
  WriteBatch& operator=(const WriteBatch&) = default;
  ~WriteBatch() = default;

  void Put(const Slice& key, const Slice& value) {
    Count(1);
    rep_.push_back(kPut);
    Add(key);
    Add(value);
  }

  // Fine if the key has no value.
  void Delete(const Slice& key) {
    Count(1);
    rep_.push_back(kDelete);
    Add(key);
  }

  void Clear() { rep_.assign(kHeader, '\0'); }

  // Bytes that it takes in memory.
  size_t ApproximateSize() const { return rep_.size(); }

  // Appends the operations of `source`, which may be the batch itself.
  void Append(const WriteBatch& source) {
    const uint32_t count = source.Count();
    const std::string operations = source.rep_.substr(kHeader);
    Count(count);
    rep_.append(operations);
  }

  // Tells `handler` of all operations.
  Status Iterate(Handler* handler) const {
    if (rep_.size() < kHeader) return Status::Corruption("a write batch without its header");
    Slice rest(rep_.data() + kHeader, rep_.size() - kHeader);
    uint32_t found = 0;
    while (!rest.empty()) {
      const char kind = rest[0];
      rest.remove_prefix(1);
      Slice key, value;
      if (!Take(&rest, &key) || (kind == kPut && !Take(&rest, &value))) {
        return Status::Corruption("a write batch with half an operation");
      }
      if (kind == kPut) {
        handler->Put(key, value);
      } else if (kind == kDelete) {
        handler->Delete(key);
      } else {
        return Status::Corruption("a write batch with an unknown operation");
      }
      found++;
    }
    if (found != Count()) return Status::Corruption("a write batch with a wrong count");
    return Status::OK();
  }

 private:
  friend class WriteBatchInternal;

  enum : char { kDelete = 0, kPut = 1 };

  // A sequence number, which is LevelDB's, and the count of operations.
  static const size_t kHeader = 12;

  uint32_t Count() const {
    uint32_t count = 0;
    for (int byte = 0; byte < 4; byte++) {
      count |= static_cast<uint32_t>(static_cast<unsigned char>(rep_[8 + byte])) << (8 * byte);
    }
    return count;
  }

  void Count(uint32_t more) {
    const uint32_t count = Count() + more;
    for (int byte = 0; byte < 4; byte++) rep_[8 + byte] = static_cast<char>(count >> (8 * byte));
  }

  // Appends the length, seven bits a byte, the lowest first, and the bytes.
  void Add(const Slice& bytes) {
    size_t length = bytes.size();
    for (; length >= 128; length >>= 7) rep_.push_back(static_cast<char>(length | 128));
    rep_.push_back(static_cast<char>(length));
    rep_.append(bytes.data(), bytes.size());
  }

  // Takes from `rest` what Add() has appended.
  static bool Take(Slice* rest, Slice* bytes) {
    uint64_t length = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest->empty()) return false;
      const unsigned char byte = static_cast<unsigned char>((*rest)[0]);
      rest->remove_prefix(1);
      length |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) {
        if (length > rest->size()) return false;
        *bytes = Slice(rest->data(), static_cast<size_t>(length));
        rest->remove_prefix(static_cast<size_t>(length));
        return true;
      }
    }
    return false;
  }

  // As LevelDB has it: the header, then for each operation its kind, the key and, for a put, the value.
  std::string rep_;
};

}  // namespace leveldb

#endif
