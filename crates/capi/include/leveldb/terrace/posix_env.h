// The operating system as an Env.

#ifndef TERRACE_LEVELDB_TERRACE_POSIX_ENV_H
#define TERRACE_LEVELDB_TERRACE_POSIX_ENV_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "leveldb/env.h"

namespace leveldb {
namespace terrace {

inline Status Refused(const std::string& fname, int error) {
  return error == ENOENT ? Status::NotFound(fname, std::strerror(error)) : Status::IOError(fname, std::strerror(error));
}

// The status of a call that returns less than zero if it fails.
inline Status Checked(const std::string& fname, int result) {
  return result < 0 ? Refused(fname, errno) : Status::OK();
}

class PosixSequentialFile final : public SequentialFile {
 public:
  PosixSequentialFile(const std::string& fname, int fd) : fname_(fname), fd_(fd) {}
  ~PosixSequentialFile() override { close(fd_); }

  Status Read(size_t n, Slice* result, char* scratch) override {
    ssize_t length;
    do {
      length = read(fd_, scratch, n);
    } while (length < 0 && errno == EINTR);
    *result = Slice(scratch, length < 0 ? 0 : static_cast<size_t>(length));
    return Checked(fname_, length < 0 ? -1 : 0);
  }

  Status Skip(uint64_t n) override {
    return Checked(fname_, lseek(fd_, static_cast<off_t>(n), SEEK_CUR) < 0 ? -1 : 0);
  }

 private:
  const std::string fname_;
  const int fd_;
};

class PosixRandomAccessFile final : public RandomAccessFile {
 public:
  PosixRandomAccessFile(const std::string& fname, int fd) : fname_(fname), fd_(fd) {}
  ~PosixRandomAccessFile() override { close(fd_); }

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    ssize_t length;
    do {
      length = pread(fd_, scratch, n, static_cast<off_t>(offset));
    } while (length < 0 && errno == EINTR);
    *result = Slice(scratch, length < 0 ? 0 : static_cast<size_t>(length));
    return Checked(fname_, length < 0 ? -1 : 0);
  }

 private:
  const std::string fname_;
  const int fd_;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(const std::string& fname, int fd) : fname_(fname), fd_(fd) {}
  ~PosixWritableFile() override {
    if (fd_ >= 0) Close();
  }

  Status Append(const Slice& data) override {
    buffer_.append(data.data(), data.size());
    return buffer_.size() < kBufferBytes ? Status::OK() : Flush();
  }

  Status Close() override {
    Status status = Flush();
    const int closed = close(fd_);
    fd_ = -1;
    return status.ok() ? Checked(fname_, closed) : status;
  }

  Status Flush() override {
    size_t written = 0;
    while (written < buffer_.size()) {
      const ssize_t length = write(fd_, buffer_.data() + written, buffer_.size() - written);
      if (length < 0 && errno != EINTR) return Refused(fname_, errno);
      if (length > 0) written += static_cast<size_t>(length);
    }
    buffer_.clear();
    return Status::OK();
  }

  Status Sync() override {
    Status status = Flush();
    return status.ok() ? Checked(fname_, fsync(fd_)) : status;
  }

 private:
  static const size_t kBufferBytes = 64 * 1024;

  const std::string fname_;
  int fd_;
  std::string buffer_;
};

class PosixLogger final : public Logger {
 public:
  explicit PosixLogger(std::FILE* file) : file_(file) {}
  ~PosixLogger() override { std::fclose(file_); }

  // A line with the time before the message.
  void Logv(const char* format, std::va_list arguments) override {
    const std::time_t now = std::time(nullptr);
    std::tm local;
    localtime_r(&now, &local);
    char time[32];
    std::strftime(time, sizeof(time), "%Y/%m/%d-%H:%M:%S", &local);
    std::lock_guard<std::mutex> guard(mutex_);
    std::fprintf(file_, "%s ", time);
    std::vfprintf(file_, format, arguments);
    std::fputc('\n', file_);
    std::fflush(file_);
  }

 private:
  std::mutex mutex_;
  std::FILE* const file_;
};

class PosixFileLock final : public FileLock {
 public:
  PosixFileLock(const std::string& name, int descriptor) : fname(name), fd(descriptor) {}

  const std::string fname;
  const int fd;
};

class PosixEnv final : public Env {
 public:
  Status NewSequentialFile(const std::string& fname, SequentialFile** result) override {
    return Opened<PosixSequentialFile>(fname, O_RDONLY, result);
  }

  Status NewRandomAccessFile(const std::string& fname, RandomAccessFile** result) override {
    return Opened<PosixRandomAccessFile>(fname, O_RDONLY, result);
  }

  Status NewWritableFile(const std::string& fname, WritableFile** result) override {
    return Opened<PosixWritableFile>(fname, O_WRONLY | O_CREAT | O_TRUNC, result);
  }

  Status NewAppendableFile(const std::string& fname, WritableFile** result) override {
    return Opened<PosixWritableFile>(fname, O_WRONLY | O_CREAT | O_APPEND, result);
  }

  bool FileExists(const std::string& fname) override { return access(fname.c_str(), F_OK) == 0; }

  Status GetChildren(const std::string& dir, std::vector<std::string>* result) override {
    result->clear();
    DIR* open = opendir(dir.c_str());
    if (open == nullptr) return Refused(dir, errno);
    while (const dirent* entry = readdir(open)) result->push_back(entry->d_name);
    closedir(open);
    return Status::OK();
  }

  Status RemoveFile(const std::string& fname) override { return Checked(fname, unlink(fname.c_str())); }
  Status CreateDir(const std::string& dirname) override { return Checked(dirname, mkdir(dirname.c_str(), 0755)); }
  Status RemoveDir(const std::string& dirname) override { return Checked(dirname, rmdir(dirname.c_str())); }

  Status GetFileSize(const std::string& fname, uint64_t* file_size) override {
    struct stat found;
    const Status status = Checked(fname, stat(fname.c_str(), &found));
    *file_size = status.ok() ? static_cast<uint64_t>(found.st_size) : 0;
    return status;
  }

  Status RenameFile(const std::string& src, const std::string& target) override {
    return Checked(src, std::rename(src.c_str(), target.c_str()));
  }

  Status LockFile(const std::string& fname, FileLock** lock) override {
    *lock = nullptr;
    const int fd = open(fname.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return Refused(fname, errno);
    {
      // The operating system's lock is the process's: it does not keep its threads apart.
      std::lock_guard<std::mutex> guard(mutex_);
      if (!locked_.insert(fname).second) {
        close(fd);
        return Status::IOError("lock " + fname, "already held by process");
      }
    }
    if (Locked(fd, F_WRLCK) < 0) {
      const int error = errno;
      Forget(fname);
      close(fd);
      return Refused("lock " + fname, error);
    }
    *lock = new PosixFileLock(fname, fd);
    return Status::OK();
  }

  Status UnlockFile(FileLock* lock) override {
    PosixFileLock* held = static_cast<PosixFileLock*>(lock);
    const Status status = Checked("unlock " + held->fname, Locked(held->fd, F_UNLCK));
    if (!status.ok()) return status;
    Forget(held->fname);
    close(held->fd);
    delete held;
    return status;
  }

  void Schedule(void (*function)(void* arg), void* arg) override {
    std::lock_guard<std::mutex> guard(mutex_);
    work_.emplace_back(function, arg);
    if (!working_) {
      working_ = true;
      std::thread(&PosixEnv::Work, this).detach();
    }
    has_work_.notify_one();
  }

  void StartThread(void (*function)(void* arg), void* arg) override { std::thread(function, arg).detach(); }

  Status GetTestDirectory(std::string* path) override {
    const char* named = std::getenv("TEST_TMPDIR");
    *path = named != nullptr && named[0] != '\0' ? named : "/tmp/leveldbtest-" + std::to_string(geteuid());
    // It may be there.
    CreateDir(*path);
    return Status::OK();
  }

  Status NewLogger(const std::string& fname, Logger** result) override {
    std::FILE* file = std::fopen(fname.c_str(), "we");
    *result = file == nullptr ? nullptr : new PosixLogger(file);
    return file == nullptr ? Refused(fname, errno) : Status::OK();
  }

  uint64_t NowMicros() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }

  void SleepForMicroseconds(int micros) override { std::this_thread::sleep_for(std::chrono::microseconds(micros)); }

 private:
  template <class File, class Interface>
  static Status Opened(const std::string& fname, int flags, Interface** result) {
    const int fd = open(fname.c_str(), flags | O_CLOEXEC, 0644);
    *result = fd < 0 ? nullptr : new File(fname, fd);
    return fd < 0 ? Refused(fname, errno) : Status::OK();
  }

  static int Locked(int fd, short kind) {
    struct flock lock;
    std::memset(&lock, 0, sizeof(lock));
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    return fcntl(fd, F_SETLK, &lock);
  }

  void Forget(const std::string& fname) {
    std::lock_guard<std::mutex> guard(mutex_);
    locked_.erase(fname);
  }

  void Work() {
    for (;;) {
      std::unique_lock<std::mutex> guard(mutex_);
      while (work_.empty()) has_work_.wait(guard);
      const std::pair<void (*)(void*), void*> next = work_.front();
      work_.pop_front();
      guard.unlock();
      (*next.first)(next.second);
    }
  }

  std::mutex mutex_;
  std::set<std::string> locked_;
  std::condition_variable has_work_;
  std::deque<std::pair<void (*)(void*), void*>> work_;
  bool working_ = false;
};

}  // namespace terrace

inline Env* Env::Default() {
  // Never deleted: its thread may run as long as the process.
  static Env* const kEnv = new terrace::PosixEnv;
  return kEnv;
}

}  // namespace leveldb

#endif
