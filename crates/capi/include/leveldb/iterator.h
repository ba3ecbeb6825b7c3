// Iterator: a position among the entries of a database at one moment.

#ifndef TERRACE_LEVELDB_ITERATOR_H
#define TERRACE_LEVELDB_ITERATOR_H

#include <vector>

#include "leveldb/export.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

// A position among entries. Several threads may read it, but only one may move it, and then nobody else may use it.
class LEVELDB_EXPORT Iterator {
 public:
  Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  virtual ~Iterator() {
    for (const Cleanup& cleanup : cleanups_) (*cleanup.function)(cleanup.arg1, cleanup.arg2);
  }

  // Whether it stands on an entry.
  virtual bool Valid() const = 0;

  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;

  // Moves to the first entry at or behind `target`.
  virtual void Seek(const Slice& target) = 0;

  // The iterator must be Valid() for these.
  virtual void Next() = 0;
  virtual void Prev() = 0;

  // Of the entry on which it stands, which must be Valid(); theirs until the iterator moves.
  virtual Slice key() const = 0;
  virtual Slice value() const = 0;

  // What has gone wrong, if anything has.
  virtual Status status() const = 0;

  // Calls of these functions when the iterator is deleted.
  using CleanupFunction = void (*)(void* arg1, void* arg2);
  void RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
    cleanups_.push_back(Cleanup{function, arg1, arg2});
  }

 private:
  struct Cleanup {
    CleanupFunction function;
    void* arg1;
    void* arg2;
  };

  std::vector<Cleanup> cleanups_;
};

namespace terrace {

// Without entries, and with a status.
class NoEntries final : public Iterator {
 public:
  explicit NoEntries(const Status& status) : status_(status) {}

  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const Slice&) override {}
  void Next() override {}
  void Prev() override {}
  Slice key() const override { return Slice(); }
  Slice value() const override { return Slice(); }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

}  // namespace terrace

inline Iterator* NewEmptyIterator() { return new terrace::NoEntries(Status::OK()); }
inline Iterator* NewErrorIterator(const Status& status) { return new terrace::NoEntries(status); }

}  // namespace leveldb

#endif
