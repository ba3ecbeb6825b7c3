// Status: whether a call has succeeded, and if not, why.

#ifndef TERRACE_LEVELDB_STATUS_H
#define TERRACE_LEVELDB_STATUS_H

#include <memory>
#include <string>
#include <utility>

#include "leveldb/export.h"
#include "leveldb/slice.h"

namespace leveldb {

// Success, which costs a pointer, or a class of failures and a message.
class LEVELDB_EXPORT Status {
 public:
  Status() noexcept = default;
  Status(const Status& other) : failure_(other.failure_ ? new Failure(*other.failure_) : nullptr) {}
  Status(Status&& other) noexcept = default;

  Status& operator=(const Status& other) {
    if (this != &other) failure_.reset(other.failure_ ? new Failure(*other.failure_) : nullptr);
    return *this;
  }
  Status& operator=(Status&& other) noexcept = default;

  static Status OK() { return Status(); }
  static Status NotFound(const Slice& message, const Slice& more = Slice()) {
    return Status(kNotFound, message, more);
  }
  static Status Corruption(const Slice& message, const Slice& more = Slice()) {
    return Status(kCorruption, message, more);
  }
  static Status NotSupported(const Slice& message, const Slice& more = Slice()) {
    return Status(kNotSupported, message, more);
  }
  static Status InvalidArgument(const Slice& message, const Slice& more = Slice()) {
    return Status(kInvalidArgument, message, more);
  }
  static Status IOError(const Slice& message, const Slice& more = Slice()) {
    return Status(kIOError, message, more);
  }

  bool ok() const { return !failure_; }
  bool IsNotFound() const { return Is(kNotFound); }
  bool IsCorruption() const { return Is(kCorruption); }
  bool IsNotSupportedError() const { return Is(kNotSupported); }
  bool IsInvalidArgument() const { return Is(kInvalidArgument); }
  bool IsIOError() const { return Is(kIOError); }

  // "OK", or the class and the message.
  std::string ToString() const {
    if (!failure_) return "OK";
    static const char* const kNames[] = {"NotFound: ", "Corruption: ", "Not implemented: ", "Invalid argument: ",
                                         "IO error: "};
    return kNames[failure_->code] + failure_->message;
  }

 private:
  enum Code { kNotFound, kCorruption, kNotSupported, kInvalidArgument, kIOError };

  struct Failure {
    Code code;
    std::string message;
  };

  Status(Code code, const Slice& message, const Slice& more) : failure_(new Failure{code, message.ToString()}) {
    if (!more.empty()) failure_->message.append(": ").append(more.data(), more.size());
  }

  bool Is(Code code) const { return failure_ && failure_->code == code; }

  std::unique_ptr<Failure> failure_;
};

}  // namespace leveldb

#endif
