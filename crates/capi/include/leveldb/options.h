// Options of databases, reads and writes. README.md says what each of them does.

#ifndef TERRACE_LEVELDB_OPTIONS_H
#define TERRACE_LEVELDB_OPTIONS_H

#include <cstddef>

#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/export.h"

namespace leveldb {

class Cache;
class FilterPolicy;
class Snapshot;

enum CompressionType {
  kNoCompression = 0,
  // LZ4, in Terrace.
  kSnappyCompression = 1
};

struct LEVELDB_EXPORT Options {
  Options() : comparator(BytewiseComparator()), env(Env::Default()) {}

  // Any other is refused by DB::Open().
  const Comparator* comparator;

  bool create_if_missing = false;
  bool error_if_exists = false;

  // Always on, whatever it says.
  bool paranoid_checks = false;

  // Not used by the database, whose files lie with the operating system.
  Env* env;

  // Not used.
  Logger* info_log = nullptr;

  // Size of a memtable, in bytes.
  size_t write_buffer_size = 4 * 1024 * 1024;

  // Memory for open tables.
  int max_open_files = 1000;

  // Size of the database's cache. With nullptr 8 MiB.
  Cache* block_cache = nullptr;

  // Size of a block, in bytes.
  size_t block_size = 4 * 1024;

  // Not used.
  int block_restart_interval = 16;

  // Not used.
  size_t max_file_size = 2 * 1024 * 1024;

  CompressionType compression = kSnappyCompression;

  // Not used.
  bool reuse_logs = false;

  // Bits for each key of the filters. With nullptr 10.
  const FilterPolicy* filter_policy = nullptr;
};

struct LEVELDB_EXPORT ReadOptions {
  // Always on, whatever it says.
  bool verify_checksums = false;

  // Not used.
  bool fill_cache = true;

  // What is seen; with nullptr the newest state.
  const Snapshot* snapshot = nullptr;
};

struct LEVELDB_EXPORT WriteOptions {
  WriteOptions() = default;

  // Whether the write, and every one before it, survives a power cut when the call returns.
  bool sync = false;
};

}  // namespace leveldb

#endif
