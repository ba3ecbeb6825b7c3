// FilterPolicy: how filters of tables are made.

#ifndef TERRACE_LEVELDB_FILTER_POLICY_H
#define TERRACE_LEVELDB_FILTER_POLICY_H

#include <string>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

// How filters are made. Terrace takes the bits for each key of one from NewBloomFilterPolicy(), at most 20. It has filters of its
// own with any other, and with none; it never calls those of a program.
class LEVELDB_EXPORT FilterPolicy {
 public:
  virtual ~FilterPolicy() = default;

  virtual const char* Name() const = 0;

  // Appends a filter of the `n` keys to `dst`.
  virtual void CreateFilter(const Slice* keys, int n, std::string* dst) const = 0;

  // True for each key that was among those of `filter`.
  virtual bool KeyMayMatch(const Slice& key, const Slice& filter) const = 0;

  // Bits for each key; 0 unless it is from NewBloomFilterPolicy(). Not LevelDB's: for DB::Open().
  virtual int TerraceBitsPerKey() const { return 0; }
};

// A Bloom filter. The caller deletes it, after any database that was opened with it.
LEVELDB_EXPORT const FilterPolicy* NewBloomFilterPolicy(int bits_per_key);

}  // namespace leveldb

#include "leveldb/terrace/bloom.h"

#endif
