// LevelDB's interface in C++: what a program can do with it, and what is refused.

#include "leveldb/db.h"

#include <atomic>
#include <map>
#include <vector>

#include "../expect.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/write_batch.h"

using leveldb::DB;
using leveldb::Iterator;
using leveldb::Options;
using leveldb::ReadOptions;
using leveldb::Slice;
using leveldb::Snapshot;
using leveldb::Status;
using leveldb::WriteBatch;
using leveldb::WriteOptions;

#define EXPECT_OK(call)                                                                       \
  do {                                                                                 \
    const Status status_ = (call);                                                     \
    if (!status_.ok()) {                                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, status_.ToString().c_str());  \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

static bool Contains(const Status& status, const char* text) {
  return status.ToString().find(text) != std::string::npos;
}

static void Values() {
  EXPECT(Slice("ab").compare("b") < 0 && Slice("ab").compare("a") > 0 && Slice("\xff").compare("a") > 0);
  EXPECT(Slice("abc").starts_with("ab") && !Slice("a").starts_with("ab") && Slice("a").starts_with(""));
  EXPECT(Slice(std::string("a\0b", 3)).size() == 3 && Slice() == Slice("") && Slice("a") != Slice("b"));
  Slice slice("abc");
  slice.remove_prefix(1);
  EXPECT(slice[0] == 'b' && slice.ToString() == "bc");

  Status failed = Status::NotFound("key", "why");
  Status copy = failed;
  Status moved = std::move(failed);
  EXPECT(copy.IsNotFound() && moved.IsNotFound() && copy.ToString() == "NotFound: key: why");
  copy = Status::OK();
  copy = Status::IOError("disk");
  EXPECT(copy.IsIOError() && !copy.IsCorruption() && copy.ToString() == "IO error: disk");
  EXPECT(Status::InvalidArgument("a").IsInvalidArgument() && Status::NotSupported("a").IsNotSupportedError());
  EXPECT(Status::OK().ToString() == "OK" && Status::Corruption("x").ToString() == "Corruption: x");
}

class Log : public WriteBatch::Handler {
 public:
  void Put(const Slice& key, const Slice& value) override {
    text += "+" + key.ToString() + "=" + value.ToString();
  }
  void Delete(const Slice& key) override { text += "-" + key.ToString(); }

  std::string text;
};

static void Batches() {
  WriteBatch batch;
  const size_t empty = batch.ApproximateSize();
  batch.Put("a", std::string(300, 'x'));
  batch.Delete("b");
  EXPECT(batch.ApproximateSize() > empty + 300);
  WriteBatch copy = batch;
  copy.Append(batch);
  copy.Append(copy);
  Log log, once;
  EXPECT_OK(copy.Iterate(&log));
  EXPECT_OK(batch.Iterate(&once));
  EXPECT(log.text == once.text + once.text + once.text + once.text);
  copy.Clear();
  Log none;
  EXPECT_OK(copy.Iterate(&none));
  EXPECT(none.text.empty() && copy.ApproximateSize() == empty);
}

static int deleted = 0;

static void CountDelete(const Slice&, void*) { deleted++; }

static void Caches() {
  leveldb::Cache* cache = leveldb::NewLRUCache(3);
  int values[5];
  for (int i = 0; i < 5; i++) cache->Release(cache->Insert(std::to_string(i), &values[i], 1, &CountDelete));
  EXPECT(deleted == 2 && cache->TotalCharge() == 3 && cache->Lookup("1") == nullptr);
  leveldb::Cache::Handle* held = cache->Lookup("2");
  EXPECT(cache->Value(held) == &values[2]);
  // What is in use stays, also when it is no longer found.
  cache->Release(cache->Insert("2", &values[0], 1, &CountDelete));
  EXPECT(deleted == 2 && cache->Value(held) == &values[2]);
  cache->Release(held);
  EXPECT(deleted == 3);
  cache->Erase("3");
  EXPECT(deleted == 4 && cache->TotalCharge() == 2);
  // Beyond the capacity, but in use.
  held = cache->Insert("big", &values[1], 9, &CountDelete);
  EXPECT(deleted == 6 && cache->TotalCharge() == 9);
  cache->Release(held);
  EXPECT(deleted == 7 && cache->TotalCharge() == 0);
  EXPECT(cache->NewId() != cache->NewId());
  cache->Release(cache->Insert("a", &values[0], 1, &CountDelete));
  cache->Prune();
  EXPECT(deleted == 8);
  cache->Release(cache->Insert("a", &values[0], 1, &CountDelete));
  delete cache;
  EXPECT(deleted == 9);
  cache = leveldb::NewLRUCache(0);
  cache->Release(cache->Insert("a", &values[0], 1, &CountDelete));
  EXPECT(deleted == 10 && cache->Lookup("a") == nullptr);
  delete cache;
}

static void Filters() {
  const leveldb::FilterPolicy* policy = leveldb::NewBloomFilterPolicy(10);
  std::vector<std::string> keys;
  std::vector<Slice> slices;
  for (int i = 0; i < 10000; i++) keys.push_back(std::to_string(i));
  slices.assign(keys.begin(), keys.end());
  std::string filter = "before";
  policy->CreateFilter(&slices[0], static_cast<int>(slices.size()), &filter);
  const Slice made(filter.data() + 6, filter.size() - 6);
  int wrong = 0;
  for (int i = 0; i < 10000; i++) {
    EXPECT(policy->KeyMayMatch(std::to_string(i), made));
    if (policy->KeyMayMatch("other" + std::to_string(i), made)) wrong++;
  }
  EXPECT(made.size() < 13000 && wrong < 200);
  delete policy;

  std::string key = "abcd";
  const leveldb::Comparator* bytewise = leveldb::BytewiseComparator();
  bytewise->FindShortestSeparator(&key, "abzz");
  EXPECT(key == "abd");
  bytewise->FindShortestSeparator(&key, "abdz");
  EXPECT(key == "abd");
  bytewise->FindShortSuccessor(&key);
  EXPECT(key == "b" && bytewise->Compare("a", "b") < 0);
}

static std::atomic<int> ran(0);

static void Count(void* by) { ran += *static_cast<int*>(by); }

static void Machine(const std::string& dir) {
  leveldb::Env* env = leveldb::Env::Default();
  EXPECT_OK(env->CreateDir(dir));
  EXPECT(env->CreateDir(dir).IsIOError());
  const std::string file = dir + "/file", other = dir + "/other";
  std::string data;
  EXPECT(leveldb::ReadFileToString(env, file, &data).IsNotFound());
  EXPECT_OK(leveldb::WriteStringToFile(env, std::string(100000, 'x'), file));
  leveldb::WritableFile* appended;
  EXPECT_OK(env->NewAppendableFile(file, &appended));
  EXPECT_OK(appended->Append("end"));
  EXPECT_OK(appended->Sync());
  EXPECT_OK(appended->Close());
  delete appended;
  EXPECT_OK(leveldb::ReadFileToString(env, file, &data));
  EXPECT(data.size() == 100003 && data.substr(100000) == "end");
  leveldb::RandomAccessFile* random;
  char scratch[8];
  Slice piece;
  EXPECT_OK(env->NewRandomAccessFile(file, &random));
  EXPECT_OK(random->Read(99999, 8, &piece, scratch));
  EXPECT(piece == "xend");
  delete random;
  leveldb::SequentialFile* sequential;
  EXPECT_OK(env->NewSequentialFile(file, &sequential));
  EXPECT_OK(sequential->Skip(100001));
  EXPECT_OK(sequential->Read(8, &piece, scratch));
  EXPECT(piece == "nd");
  delete sequential;
  uint64_t size;
  EXPECT_OK(env->RenameFile(file, other));
  EXPECT_OK(env->GetFileSize(other, &size));
  EXPECT(size == 100003 && !env->FileExists(file));
  std::vector<std::string> names;
  EXPECT_OK(env->GetChildren(dir, &names));
  EXPECT(names.size() == 3);
  leveldb::FileLock *lock, *second;
  EXPECT_OK(env->LockFile(dir + "/LOCK", &lock));
  EXPECT(env->LockFile(dir + "/LOCK", &second).IsIOError() && second == nullptr);
  EXPECT_OK(env->UnlockFile(lock));
  EXPECT_OK(env->LockFile(dir + "/LOCK", &lock));
  EXPECT_OK(env->UnlockFile(lock));
  leveldb::Logger* logger;
  EXPECT_OK(env->NewLogger(dir + "/log", &logger));
  leveldb::Log(logger, "%d apples", 3);
  leveldb::Log(nullptr, "nowhere");
  delete logger;
  EXPECT_OK(leveldb::ReadFileToString(env, dir + "/log", &data));
  EXPECT(data.find(" 3 apples\n") != std::string::npos);
  static int one = 1, ten = 10;
  env->Schedule(&Count, &one);
  env->StartThread(&Count, &ten);
  while (ran != 11) env->SleepForMicroseconds(1000);
  EXPECT(env->NowMicros() > 0);
  for (const char* name : {"/other", "/LOCK", "/log"}) EXPECT_OK(env->RemoveFile(dir + name));
  EXPECT_OK(env->RemoveDir(dir));
}

class Backwards : public leveldb::Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "test.Backwards"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

static void Openings(const std::string& path) {
  DB* db = reinterpret_cast<DB*>(1);
  Options options;
  Status status = DB::Open(options, path, &db);
  EXPECT(status.IsInvalidArgument() && Contains(status, "does not exist") && db == nullptr);
  options.create_if_missing = true;
  Backwards backwards;
  options.comparator = &backwards;
  status = DB::Open(options, path, &db);
  EXPECT(status.IsInvalidArgument() && Contains(status, "comparator \"test.Backwards\" is not taken"));
  options.comparator = leveldb::BytewiseComparator();
  EXPECT_OK(DB::Open(options, path, &db));
  DB* second;
  EXPECT(DB::Open(options, path, &second).IsIOError() && second == nullptr);
  EXPECT(leveldb::DestroyDB(path, options).IsIOError());
  delete db;
  options.error_if_exists = true;
  status = DB::Open(options, path, &db);
  EXPECT(status.IsInvalidArgument() && Contains(status, "exists"));
}

// All entries from both ends, as text.
static std::string Contents(DB* db, const ReadOptions& options) {
  std::string forward, backward;
  Iterator* iterator = db->NewIterator(options);
  EXPECT(!iterator->Valid());
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    forward += iterator->key().ToString() + "=" + iterator->value().ToString() + " ";
  }
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    backward = iterator->key().ToString() + "=" + iterator->value().ToString() + " " + backward;
  }
  EXPECT_OK(iterator->status());
  delete iterator;
  EXPECT(forward == backward);
  return forward;
}

static void ReadsAndWrites(DB* db) {
  std::string value = "left";
  EXPECT(db->Get(ReadOptions(), "none", &value).IsNotFound() && value == "left");
  EXPECT_OK(db->Put(WriteOptions(), "a", "1"));
  EXPECT_OK(db->Put(WriteOptions(), "", "empty"));
  EXPECT_OK(db->Get(ReadOptions(), "", &value));
  EXPECT(value == "empty");
  EXPECT_OK(db->Delete(WriteOptions(), ""));
  EXPECT(db->Put(WriteOptions(), std::string(70000, 'k'), "").IsInvalidArgument());

  ReadOptions then;
  then.snapshot = db->GetSnapshot();
  WriteBatch batch;
  batch.Put("b", "2");
  batch.Put("c", "3");
  batch.Delete("a");
  WriteOptions synced;
  synced.sync = true;
  EXPECT_OK(db->Write(synced, &batch));
  EXPECT_OK(db->Write(WriteOptions(), nullptr));
  batch.Put(std::string(70000, 'k'), "");
  EXPECT(db->Write(synced, &batch).IsInvalidArgument());
  EXPECT(Contents(db, then) == "a=1 " && Contents(db, ReadOptions()) == "b=2 c=3 ");
  EXPECT_OK(db->Get(then, "a", &value));
  EXPECT(value == "1");
  db->ReleaseSnapshot(then.snapshot);

  static int cleaned = 0;
  Iterator* iterator = db->NewIterator(ReadOptions());
  iterator->RegisterCleanup([](void* count, void*) { ++*static_cast<int*>(count); }, &cleaned, nullptr);
  iterator->Seek("bb");
  EXPECT(iterator->Valid() && iterator->key() == "c" && iterator->value() == "3");
  iterator->Seek(iterator->key());
  iterator->Prev();
  EXPECT(iterator->key() == "b");
  iterator->Prev();
  EXPECT(!iterator->Valid());
  delete iterator;
  EXPECT(cleaned == 1);
  Iterator* error = leveldb::NewErrorIterator(Status::Corruption("x"));
  EXPECT(!error->Valid() && error->status().IsCorruption());
  delete error;
}

static void Management(DB* db) {
  std::string value;
  EXPECT(db->GetProperty("leveldb.stats", &value) && !value.empty());
  EXPECT(db->GetProperty("leveldb.num-files-at-level0", &value));
  EXPECT(!db->GetProperty("mood", &value));
  for (int i = 0; i < 1000; i++) EXPECT_OK(db->Put(WriteOptions(), "k" + std::to_string(i), std::string(1000, 'v')));
  db->CompactRange(nullptr, nullptr);
  const Slice from = "k1", to = "k2";
  db->CompactRange(&from, &to);
  const leveldb::Range ranges[] = {leveldb::Range("k", "l"), leveldb::Range("x", "y"), leveldb::Range("l", "k")};
  uint64_t sizes[3];
  db->GetApproximateSizes(ranges, 3, sizes);
  EXPECT(sizes[0] > 1000 && sizes[0] < 2000000 && sizes[1] == 0 && sizes[2] == 0);
}

int main(int count, char** arguments) {
  EXPECT(count == 2);
  const std::string path = arguments[1];
  Values();
  Batches();
  Caches();
  Filters();
  Machine(path + ".files");
  Openings(path);

  Options options;
  options.block_cache = leveldb::NewLRUCache(16 << 20);
  options.filter_policy = leveldb::NewBloomFilterPolicy(12);
  options.compression = leveldb::kNoCompression;
  DB* db;
  EXPECT_OK(DB::Open(options, path, &db));
  ReadsAndWrites(db);
  Management(db);
  delete db;
  EXPECT_OK(leveldb::RepairDB(path, options));
  EXPECT_OK(DB::Open(options, path, &db));
  std::string value;
  EXPECT_OK(db->Get(ReadOptions(), "k42", &value));
  EXPECT(value.size() == 1000);
  delete db;
  EXPECT_OK(leveldb::DestroyDB(path, options));
  EXPECT_OK(leveldb::DestroyDB(path, options));
  EXPECT(!leveldb::Env::Default()->FileExists(path));
  delete options.filter_policy;
  delete options.block_cache;
  puts("leveldb.cc: passed");
  return 0;
}
