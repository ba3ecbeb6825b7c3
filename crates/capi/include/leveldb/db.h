// DB: a database, kept by Terrace.

#ifndef TERRACE_LEVELDB_DB_H
#define TERRACE_LEVELDB_DB_H

#include <cstdint>
#include <cstdio>
#include <string>

#include "leveldb/export.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/write_batch.h"

namespace leveldb {

// The version of LevelDB whose interface this is.
static const int kMajorVersion = 1;
static const int kMinorVersion = 23;

// A database at one moment: see DB::GetSnapshot().
class LEVELDB_EXPORT Snapshot {
 protected:
  virtual ~Snapshot() = default;
};

// The keys from `start` up to and without `limit`.
struct LEVELDB_EXPORT Range {
  Range() = default;
  Range(const Slice& s, const Slice& l) : start(s), limit(l) {}

  Slice start;
  Slice limit;
};

// A map from keys to values, ordered by the keys. Any number of threads may use it.
class LEVELDB_EXPORT DB {
 public:
  // Opens the database `name`, a directory, and has `*dbptr` point to it; to nullptr if that fails. The caller deletes it.
  static Status Open(const Options& options, const std::string& name, DB** dbptr);

  DB() = default;
  DB(const DB&) = delete;
  DB& operator=(const DB&) = delete;

  // Closes the database: all that was written is durable then. Iterators must have been deleted before.
  virtual ~DB() = default;

  // Has a body, for whoever derives from it: a batch of one operation.
  virtual Status Put(const WriteOptions& options, const Slice& key, const Slice& value) = 0;

  // Fine if the key has no value. Has a body as Put() has.
  virtual Status Delete(const WriteOptions& options, const Slice& key) = 0;

  // Applies all of `updates`, or nothing.
  virtual Status Write(const WriteOptions& options, WriteBatch* updates) = 0;

  // NotFound if the key has no value; `*value` is left as it is then.
  virtual Status Get(const ReadOptions& options, const Slice& key, std::string* value) = 0;

  // An iterator, which stands nowhere yet. The caller deletes it.
  virtual Iterator* NewIterator(const ReadOptions& options) = 0;

  // The database as it is now, for ReadOptions::snapshot, until ReleaseSnapshot().
  virtual const Snapshot* GetSnapshot() = 0;
  virtual void ReleaseSnapshot(const Snapshot* snapshot) = 0;

  // What the database tells of itself under a name: LevelDB's, and those that README.md lists.
  virtual bool GetProperty(const Slice& property, std::string* value) = 0;

  // About how many bytes of files each of `n` ranges takes.
  virtual void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) = 0;

  // Compacts what lies from `*begin` to `*end`, both included; nullptr stands for the first or last key. Waits for it.
  virtual void CompactRange(const Slice* begin, const Slice* end) = 0;
};

inline Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

inline Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

// Removes the database `name`, which must not be open; fine if there is none. Files of others in its directory stay.
LEVELDB_EXPORT Status DestroyDB(const std::string& name, const Options& options);

// Repairs the database `name`, which must not be open, in place.
LEVELDB_EXPORT Status RepairDB(const std::string& name, const Options& options);

}  // namespace leveldb

#include "leveldb/terrace/store.h"

#endif
