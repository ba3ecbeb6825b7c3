// For LevelDB's db_test: the classes of its one benchmark, which is not run.

#ifndef TERRACE_TESTS_VERSION_SET_H
#define TERRACE_TESTS_VERSION_SET_H

#include "db/dbformat.h"
#include "leveldb/options.h"
#include "port/port.h"

namespace leveldb {

class VersionEdit {
 public:
  void AddFile(int, uint64_t, uint64_t, const InternalKey&, const InternalKey&) {}
  void RemoveFile(int, uint64_t) {}
};

class VersionSet {
 public:
  VersionSet(const std::string&, const Options*, void*, const InternalKeyComparator*) {}
  Status Recover(bool*) { return Status::NotSupported("LevelDB's manifest"); }
  Status LogAndApply(VersionEdit*, port::Mutex*) { return Status::NotSupported("LevelDB's manifest"); }
};

}  // namespace leveldb

#endif
