// Env: files, threads and time, for programs that use LevelDB's. The database itself does not go through it.

#ifndef TERRACE_LEVELDB_ENV_H
#define TERRACE_LEVELDB_ENV_H

#include <cstdarg>
#include <cstdint>
#include <string>
#include <vector>

#include "leveldb/export.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"

namespace leveldb {

class FileLock;
class Logger;
class RandomAccessFile;
class SequentialFile;
class WritableFile;

// The machine. Any number of threads may use it. What its functions return, the caller deletes.
class LEVELDB_EXPORT Env {
 public:
  Env() = default;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;
  virtual ~Env() = default;

  // The operating system. Never deleted.
  static Env* Default();

  // NotFound if there is no such file. `*result` is nullptr after a failure.
  virtual Status NewSequentialFile(const std::string& fname, SequentialFile** result) = 0;
  virtual Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) = 0;

  // A new file, in the place of one that is there.
  virtual Status NewWritableFile(const std::string& fname, WritableFile** result) = 0;

  // A file to be written from its end on; a new one if there is none.
  virtual Status NewAppendableFile(const std::string& fname, WritableFile** result) {
    *result = nullptr;
    return Status::NotSupported("NewAppendableFile", fname);
  }

  virtual bool FileExists(const std::string& fname) = 0;

  // The names in a directory, "." and ".." among them.
  virtual Status GetChildren(const std::string& dir, std::vector<std::string>* result) = 0;

  // An Env has one of these two.
  virtual Status RemoveFile(const std::string& fname) { return DeleteFile(fname); }
  virtual Status DeleteFile(const std::string& fname) { return RemoveFile(fname); }

  virtual Status CreateDir(const std::string& dirname) = 0;

  // An Env has one of these two.
  virtual Status RemoveDir(const std::string& dirname) { return DeleteDir(dirname); }
  virtual Status DeleteDir(const std::string& dirname) { return RemoveDir(dirname); }

  virtual Status GetFileSize(const std::string& fname, uint64_t* file_size) = 0;

  virtual Status RenameFile(const std::string& src, const std::string& target) = 0;

  // Takes a lock that processes share, without waiting, and makes the file if it is not there.
  virtual Status LockFile(const std::string& fname, FileLock** lock) = 0;
  virtual Status UnlockFile(FileLock* lock) = 0;

  // Runs the function once, on a thread of the Env.
  virtual void Schedule(void (*function)(void* arg), void* arg) = 0;

  // Runs the function once, on a thread of its own.
  virtual void StartThread(void (*function)(void* arg), void* arg) = 0;

  // A directory for tests.
  virtual Status GetTestDirectory(std::string* path) = 0;

  virtual Status NewLogger(const std::string& fname, Logger** result) = 0;

  // Time since some fixed moment.
  virtual uint64_t NowMicros() = 0;

  virtual void SleepForMicroseconds(int micros) = 0;
};

// A file to be read from its beginning on, by one thread.
class LEVELDB_EXPORT SequentialFile {
 public:
  SequentialFile() = default;
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;
  virtual ~SequentialFile() = default;

  // Reads up to `n` bytes. `scratch` has room for them, and `*result` may lie there. Fewer are the end of the file.
  virtual Status Read(size_t n, Slice* result, char* scratch) = 0;

  // Skips `n` bytes, or to the end of the file.
  virtual Status Skip(uint64_t n) = 0;
};

// A file to be read anywhere, by any number of threads.
class LEVELDB_EXPORT RandomAccessFile {
 public:
  RandomAccessFile() = default;
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;
  virtual ~RandomAccessFile() = default;

  // As SequentialFile::Read(), from `offset` on.
  virtual Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const = 0;
};

// A file to be written from its end on, by one thread.
class LEVELDB_EXPORT WritableFile {
 public:
  WritableFile() = default;
  WritableFile(const WritableFile&) = delete;
  WritableFile& operator=(const WritableFile&) = delete;
  virtual ~WritableFile() = default;

  virtual Status Append(const Slice& data) = 0;
  virtual Status Close() = 0;
  // Hands everything to the operating system.
  virtual Status Flush() = 0;
  // Makes everything durable.
  virtual Status Sync() = 0;
};

// Takes messages.
class LEVELDB_EXPORT Logger {
 public:
  Logger() = default;
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;
  virtual ~Logger() = default;

  virtual void Logv(const char* format, std::va_list arguments) = 0;
};

// A lock that is held: see Env::LockFile().
class LEVELDB_EXPORT FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  virtual ~FileLock() = default;
};

// A message to `logger`; nothing if that is nullptr.
inline void Log(Logger* logger, const char* format, ...)
#if defined(__GNUC__)
    __attribute__((__format__(__printf__, 2, 3)))
#endif
    ;

inline void Log(Logger* logger, const char* format, ...) {
  if (logger == nullptr) return;
  std::va_list arguments;
  va_start(arguments, format);
  logger->Logv(format, arguments);
  va_end(arguments);
}

// Writes a file of `data`. If that fails, there is none.
inline Status WriteStringToFile(Env* env, const Slice& data, const std::string& fname) {
  WritableFile* file = nullptr;
  Status status = env->NewWritableFile(fname, &file);
  if (!status.ok()) return status;
  status = file->Append(data);
  if (status.ok()) status = file->Close();
  delete file;
  if (!status.ok()) env->RemoveFile(fname);
  return status;
}

// All of a file.
inline Status ReadFileToString(Env* env, const std::string& fname, std::string* data) {
  data->clear();
  SequentialFile* file = nullptr;
  Status status = env->NewSequentialFile(fname, &file);
  if (!status.ok()) return status;
  std::string scratch(8192, '\0');
  Slice piece;
  do {
    status = file->Read(scratch.size(), &piece, &scratch[0]);
    if (status.ok()) data->append(piece.data(), piece.size());
  } while (status.ok() && !piece.empty());
  delete file;
  return status;
}

// Hands everything to another Env, which is its caller's. Whoever wants another behaviour of some functions derives from it.
class LEVELDB_EXPORT EnvWrapper : public Env {
 public:
  explicit EnvWrapper(Env* target) : target_(target) {}

  Env* target() const { return target_; }

  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override {
    return target_->NewSequentialFile(fname, result);
  }
  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override {
    return target_->NewRandomAccessFile(fname, result);
  }
  Status NewWritableFile(const std::string& fname, WritableFile** result) override {
    return target_->NewWritableFile(fname, result);
  }
  Status NewAppendableFile(const std::string& fname, WritableFile** result) override {
    return target_->NewAppendableFile(fname, result);
  }
  bool FileExists(const std::string& fname) override { return target_->FileExists(fname); }
  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    return target_->GetChildren(dir, result);
  }
  Status RemoveFile(const std::string& fname) override { return target_->RemoveFile(fname); }
  Status CreateDir(const std::string& dirname) override { return target_->CreateDir(dirname); }
  Status RemoveDir(const std::string& dirname) override { return target_->RemoveDir(dirname); }
  Status GetFileSize(const std::string& fname, uint64_t* file_size) override {
    return target_->GetFileSize(fname, file_size);
  }
  Status RenameFile(const std::string& src, const std::string& target) override {
    return target_->RenameFile(src, target);
  }
  Status LockFile(const std::string& fname, FileLock** lock) override { return target_->LockFile(fname, lock); }
  Status UnlockFile(FileLock* lock) override { return target_->UnlockFile(lock); }
  void Schedule(void (*function)(void* arg), void* arg) override { target_->Schedule(function, arg); }
  void StartThread(void (*function)(void* arg), void* arg) override { target_->StartThread(function, arg); }
  Status GetTestDirectory(std::string* path) override { return target_->GetTestDirectory(path); }
  Status NewLogger(const std::string& fname, Logger** result) override { return target_->NewLogger(fname, result); }
  uint64_t NowMicros() override { return target_->NowMicros(); }
  void SleepForMicroseconds(int micros) override { target_->SleepForMicroseconds(micros); }

 private:
  Env* const target_;
};

}  // namespace leveldb

#include "leveldb/terrace/posix_env.h"

#endif
