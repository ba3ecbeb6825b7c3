// Comparator: an order of keys. Terrace has one, bytewise.

#ifndef TERRACE_LEVELDB_COMPARATOR_H
#define TERRACE_LEVELDB_COMPARATOR_H

#include <string>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

// An order of keys. DB::Open() refuses any but those that are called "leveldb.BytewiseComparator", with a message. A program may
// use it for what it sorts itself.
class LEVELDB_EXPORT Comparator {
 public:
  virtual ~Comparator() = default;

  // Below, at or above zero, as `a` lies before, at or behind `b`.
  virtual int Compare(const Slice& a, const Slice& b) const = 0;

  virtual const char* Name() const = 0;

  // May make `start` shorter, to a key that is not before it, and before `limit`.
  virtual void FindShortestSeparator(std::string* start, const Slice& limit) const = 0;

  // May make `key` shorter, to a key that is not before it.
  virtual void FindShortSuccessor(std::string* key) const = 0;
};

namespace terrace {

class Bytewise final : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }

  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    size_t shared = 0;
    while (shared < start->size() && shared < limit.size() && (*start)[shared] == limit[shared]) shared++;
    // Where one is a prefix of the other, there is nothing between them that is shorter.
    if (shared == start->size() || shared == limit.size()) return;
    const unsigned here = static_cast<unsigned char>((*start)[shared]);
    const unsigned there = static_cast<unsigned char>(limit[shared]);
    if (here + 1 < there) {
      (*start)[shared] = static_cast<char>(here + 1);
      start->resize(shared + 1);
    }
  }

  void FindShortSuccessor(std::string* key) const override {
    const size_t at = key->find_first_not_of('\xff');
    if (at == std::string::npos) return;
    (*key)[at] = static_cast<char>(static_cast<unsigned char>((*key)[at]) + 1);
    key->resize(at + 1);
  }
};

}  // namespace terrace

// The bytewise order. Never deleted.
inline const Comparator* BytewiseComparator() {
  static const Comparator* const kBytewise = new terrace::Bytewise;
  return kBytewise;
}

}  // namespace leveldb

#endif
