// Cache: a map that forgets what was not used for long.

#ifndef TERRACE_LEVELDB_CACHE_H
#define TERRACE_LEVELDB_CACHE_H

#include <cstddef>
#include <cstdint>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

// A map from keys to values that a program may use as it likes. As Options::block_cache it says how large the cache of a database
// is; each database has one of its own, and puts nothing here.
class LEVELDB_EXPORT Cache {
 public:
  Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Calls the deleter of each entry.
  virtual ~Cache() = default;

  // An entry that is in use: it stays until Release().
  struct Handle {};

  // Puts an entry in the place of an older one. `charge` counts against the capacity. `deleter` is called when the entry is no
  // longer needed. The caller must Release() the result.
  virtual Handle* Insert(const Slice& key, void* value, size_t charge,
                         void (*deleter)(const Slice& key, void* value)) = 0;

  // The entry of `key`, or nullptr. The caller must Release() the result.
  virtual Handle* Lookup(const Slice& key) = 0;

  virtual void Release(Handle* handle) = 0;

  virtual void* Value(Handle* handle) = 0;

  // Forgets the entry of `key`; it stays for those who use it.
  virtual void Erase(const Slice& key) = 0;

  // A number that it has not given yet, with which users can keep their keys apart.
  virtual uint64_t NewId() = 0;

  // Forgets all entries that nobody uses.
  virtual void Prune() {}

  // The charges of all entries together, about.
  virtual size_t TotalCharge() const = 0;

  // The capacity; 0 unless it is from NewLRUCache(). Not LevelDB's: for DB::Open().
  virtual size_t TerraceCapacity() const { return 0; }
};

// A cache that forgets the entry that was not used for longest. The caller deletes it, after any database that was opened with it.
LEVELDB_EXPORT Cache* NewLRUCache(size_t capacity);

}  // namespace leveldb

#include "leveldb/terrace/lru_cache.h"

#endif
