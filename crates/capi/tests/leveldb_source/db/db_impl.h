// For LevelDB's db_test: its class DBImpl, as far as the cases that are run use it. Everything is a call of the interface.

#ifndef TERRACE_TESTS_DB_IMPL_H
#define TERRACE_TESTS_DB_IMPL_H

#include "db/dbformat.h"
#include "leveldb/db.h"

namespace leveldb {

// db_test casts its DB to this. It has no data and no virtual function, and its functions only call those of DB.
class DBImpl : public DB {
 public:
  // LevelDB writes its memtable to a table here. A compaction of no keys does the same in Terrace, and no more.
  Status TEST_CompactMemTable() {
    const Slice none = "";
    CompactRange(&none, &none);
    return Status::OK();
  }

  void TEST_CompactRange(int, const Slice* begin, const Slice* end) { CompactRange(begin, end); }

  // What only cases use that are not run.
  Iterator* TEST_NewInternalIterator() { return NewErrorIterator(Status::NotSupported("entries as they are stored")); }
  int64_t TEST_MaxNextLevelOverlappingBytes() { return -1; }
};

}  // namespace leveldb

#endif
