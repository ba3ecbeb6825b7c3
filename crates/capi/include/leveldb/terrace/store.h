// The database of DB::Open(), over Terrace's libraries in C.
//
// It is opened, removed and repaired by LevelDB's interface in C, which knows what LevelDB's options are in Terrace. The rest goes
// by terrace.h, which lends bytes and tells kinds of errors.

#ifndef TERRACE_LEVELDB_TERRACE_STORE_H
#define TERRACE_LEVELDB_TERRACE_STORE_H

#include <cstring>
#include <string>

#include "leveldb/c.h"
#include "leveldb/cache.h"
#include "leveldb/db.h"
#include "leveldb/filter_policy.h"
#include "terrace.h"

namespace leveldb {
namespace terrace {

// Takes an error object.
inline Status Told(terrace_error* error) {
  if (error == nullptr) return Status::OK();
  const terrace_error_kind kind = terrace_error_get_kind(error);
  const std::string message = terrace_error_message(error);
  terrace_error_free(error);
  switch (kind) {
    case TERRACE_ERROR_KIND_INVALID_INPUT:
    case TERRACE_ERROR_KIND_NOT_FOUND:
      return Status::InvalidArgument(message);
    case TERRACE_ERROR_KIND_CORRUPTION:
    case TERRACE_ERROR_KIND_INCONSISTENT:
      return Status::Corruption(message);
    default:
      return Status::IOError(message);
  }
}

// Takes an error of LevelDB's interface in C: a text that begins with its class.
inline Status Told(char* text) {
  if (text == nullptr) return Status::OK();
  const std::string error = text;
  leveldb_free(text);
  const auto behind = [&error](const char* name, std::string* message) {
    const size_t length = std::strlen(name);
    if (error.compare(0, length, name) != 0) return false;
    *message = error.substr(length);
    return true;
  };
  std::string message;
  if (behind("Invalid argument: ", &message)) return Status::InvalidArgument(message);
  if (behind("Corruption: ", &message)) return Status::Corruption(message);
  if (behind("IO error: ", &message)) return Status::IOError(message);
  return Status::IOError(error);
}

inline terrace_slice Lent(const Slice& slice) {
  // Where `data` is NULL, there is no key at all.
  return terrace_bytes(slice.data() == nullptr ? "" : slice.data(), slice.size());
}

inline uint32_t Durability(const WriteOptions& options) {
  return options.sync ? TERRACE_DURABILITY_SYNCED : TERRACE_DURABILITY_BUFFERED;
}

// The options, for LevelDB's interface in C.
class COptions {
 public:
  explicit COptions(const Options& options) : options_(leveldb_options_create()) {
    leveldb_options_set_create_if_missing(options_, options.create_if_missing);
    leveldb_options_set_error_if_exists(options_, options.error_if_exists);
    leveldb_options_set_paranoid_checks(options_, options.paranoid_checks);
    leveldb_options_set_write_buffer_size(options_, options.write_buffer_size);
    leveldb_options_set_max_open_files(options_, options.max_open_files);
    leveldb_options_set_block_size(options_, options.block_size);
    leveldb_options_set_block_restart_interval(options_, options.block_restart_interval);
    leveldb_options_set_max_file_size(options_, options.max_file_size);
    leveldb_options_set_compression(options_, options.compression);
    if (options.comparator != nullptr) {
      // Only its name is looked at.
      void* state = const_cast<Comparator*>(options.comparator);
      leveldb_comparator_t* comparator = leveldb_comparator_create(state, nullptr, nullptr, &Name);
      leveldb_options_set_comparator(options_, comparator);
      leveldb_comparator_destroy(comparator);
    }
    if (options.block_cache != nullptr && options.block_cache->TerraceCapacity() > 0) {
      leveldb_cache_t* cache = leveldb_cache_create_lru(options.block_cache->TerraceCapacity());
      leveldb_options_set_cache(options_, cache);
      leveldb_cache_destroy(cache);
    }
    if (options.filter_policy != nullptr && options.filter_policy->TerraceBitsPerKey() > 0) {
      leveldb_filterpolicy_t* policy = leveldb_filterpolicy_create_bloom(options.filter_policy->TerraceBitsPerKey());
      leveldb_options_set_filter_policy(options_, policy);
      leveldb_filterpolicy_destroy(policy);
    }
  }

  ~COptions() { leveldb_options_destroy(options_); }

  COptions(const COptions&) = delete;
  COptions& operator=(const COptions&) = delete;

  const leveldb_options_t* get() const { return options_; }

 private:
  static const char* Name(void* state) { return static_cast<const Comparator*>(state)->Name(); }

  leveldb_options_t* const options_;
};

class Moment final : public Snapshot {
 public:
  explicit Moment(terrace_snapshot* snapshot) : snapshot_(snapshot) {}
  ~Moment() override { terrace_snapshot_free(snapshot_); }

  const terrace_snapshot* get() const { return snapshot_; }

 private:
  terrace_snapshot* const snapshot_;
};

// An iterator over a cursor, which lends the bytes of each entry.
class Walk final : public Iterator {
 public:
  explicit Walk(terrace_cursor* cursor) : cursor_(cursor), entry_() {}
  ~Walk() override { terrace_cursor_free(cursor_); }

  bool Valid() const override { return entry_.key.data != nullptr; }
  void SeekToFirst() override { status_ = Told(terrace_cursor_first(cursor_, &entry_)); }
  void SeekToLast() override { status_ = Told(terrace_cursor_last(cursor_, &entry_)); }
  void Seek(const Slice& target) override { status_ = Told(terrace_cursor_seek(cursor_, Lent(target), &entry_)); }

  void Next() override {
    assert(Valid());
    if (Valid()) status_ = Told(terrace_cursor_next(cursor_, &entry_));
  }

  void Prev() override {
    assert(Valid());
    if (Valid()) status_ = Told(terrace_cursor_prev(cursor_, &entry_));
  }

  Slice key() const override { return Slice(entry_.key.data, entry_.key.len); }
  Slice value() const override { return Slice(entry_.value.data, entry_.value.len); }
  Status status() const override { return status_; }

 private:
  terrace_cursor* const cursor_;
  terrace_entry entry_;
  Status status_;
};

// Gathers a write batch in the form of the library.
class Gatherer final : public WriteBatch::Handler {
 public:
  explicit Gatherer(const terrace_keyspace* keyspace) : keyspace_(keyspace), batch_(terrace_batch_create()) {}
  ~Gatherer() override { terrace_batch_free(batch_); }

  void Put(const Slice& key, const Slice& value) override {
    if (status_.ok()) status_ = Told(terrace_batch_put(batch_, keyspace_, Lent(key), Lent(value)));
  }

  void Delete(const Slice& key) override {
    if (status_.ok()) status_ = Told(terrace_batch_delete(batch_, keyspace_, Lent(key)));
  }

  terrace_batch* get() const { return batch_; }
  const Status& status() const { return status_; }

 private:
  const terrace_keyspace* const keyspace_;
  terrace_batch* const batch_;
  Status status_;
};

class Store final : public DB {
 public:
  static Status Open(const Options& options, const std::string& name, DB** dbptr) {
    *dbptr = nullptr;
    char* error = nullptr;
    leveldb_t* leveldb = leveldb_open(COptions(options).get(), name.c_str(), &error);
    if (leveldb == nullptr) return Told(error);
    Store* store = new Store(leveldb);
    Status status = Told(terrace_db_of_leveldb(leveldb, &store->db_));
    if (status.ok()) status = Told(terrace_keyspace_open(store->db_, "default", nullptr, &store->keyspace_));
    if (!status.ok()) {
      delete store;
      return status;
    }
    *dbptr = store;
    return status;
  }

  ~Store() override {
    terrace_keyspace_free(keyspace_);
    terrace_db_free(db_);
    leveldb_close(leveldb_);
  }

  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    return Told(terrace_put(keyspace_, Lent(key), Lent(value), Durability(options)));
  }

  Status Delete(const WriteOptions& options, const Slice& key) override {
    return Told(terrace_delete(keyspace_, Lent(key), Durability(options)));
  }

  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    if (updates == nullptr) return Status::OK();
    Gatherer gathered(keyspace_);
    Status status = updates->Iterate(&gathered);
    if (status.ok()) status = gathered.status();
    if (status.ok()) status = Told(terrace_write(db_, gathered.get(), Durability(options)));
    return status;
  }

  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override {
    terrace_value found;
    Status status = Told(terrace_get(keyspace_, Seen(options), Lent(key), &found));
    if (!status.ok()) return status;
    if (found.data == nullptr) return Status::NotFound(Slice());
    value->assign(found.data, found.len);
    terrace_value_free(&found);
    return status;
  }

  Iterator* NewIterator(const ReadOptions& options) override {
    terrace_cursor* cursor = nullptr;
    Status status = Told(terrace_cursor_open(keyspace_, Seen(options), terrace_all(), &cursor));
    if (!status.ok()) return NewErrorIterator(status);
    return new Walk(cursor);
  }

  const Snapshot* GetSnapshot() override {
    terrace_snapshot* snapshot = nullptr;
    // It fails only if the handle is none.
    Told(terrace_snapshot_create(db_, &snapshot));
    return new Moment(snapshot);
  }

  void ReleaseSnapshot(const Snapshot* snapshot) override { delete static_cast<const Moment*>(snapshot); }

  bool GetProperty(const Slice& property, std::string* value) override {
    char* found = nullptr;
    if (!Told(terrace_property(db_, property.ToString().c_str(), &found)).ok() || found == nullptr) return false;
    value->assign(found);
    terrace_free(found);
    return true;
  }

  void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) override {
    for (int i = 0; i < n; i++) {
      const terrace_range between = terrace_between(Lent(range[i].start), Lent(range[i].limit));
      sizes[i] = terrace_keyspace_approximate_bytes(keyspace_, between);
    }
  }

  void CompactRange(const Slice* begin, const Slice* end) override {
    terrace_range range = terrace_all();
    if (begin != nullptr) range.from = Lent(*begin);
    if (end != nullptr) range.to = Lent(*end);
    range.to_included = true;
    // LevelDB has nowhere to tell of a failure either: the next write does.
    Told(terrace_compact_range(keyspace_, range));
  }

  // The store, for what LevelDB lacks: see terrace.h. It is the database's.
  const terrace_db* Handle() const { return db_; }

 private:
  explicit Store(leveldb_t* leveldb) : leveldb_(leveldb) {}

  static const terrace_snapshot* Seen(const ReadOptions& options) {
    return options.snapshot == nullptr ? nullptr : static_cast<const Moment*>(options.snapshot)->get();
  }

  leveldb_t* const leveldb_;
  terrace_db* db_ = nullptr;
  terrace_keyspace* keyspace_ = nullptr;
};

}  // namespace terrace

inline Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  return terrace::Store::Open(options, name, dbptr);
}

inline Status DestroyDB(const std::string& name, const Options& options) {
  char* error = nullptr;
  leveldb_destroy_db(terrace::COptions(options).get(), name.c_str(), &error);
  return terrace::Told(error);
}

inline Status RepairDB(const std::string& name, const Options& options) {
  char* error = nullptr;
  leveldb_repair_db(terrace::COptions(options).get(), name.c_str(), &error);
  return terrace::Told(error);
}

}  // namespace leveldb

#endif
