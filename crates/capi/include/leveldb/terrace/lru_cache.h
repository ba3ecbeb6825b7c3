// The cache of NewLRUCache().

#ifndef TERRACE_LEVELDB_TERRACE_LRU_CACHE_H
#define TERRACE_LEVELDB_TERRACE_LRU_CACHE_H

#include <list>
#include <mutex>
#include <string>
#include <unordered_map>

#include "leveldb/cache.h"

namespace leveldb {
namespace terrace {

// One lock over a table of entries and a list of those that nobody uses, the one that was used last at the end.
//
// An entry lives as long as the table or a user has it. It is in the list exactly if the table alone has it.
class LruCache final : public Cache {
 public:
  explicit LruCache(size_t capacity) : capacity_(capacity) {}

  ~LruCache() override {
    for (auto& entry : table_) Delete(entry.second);
  }

  Handle* Insert(const Slice& key, void* value, size_t charge,
                 void (*deleter)(const Slice& key, void* value)) override {
    std::list<Entry*> gone;
    Entry* entry = new Entry(key, value, charge, deleter);
    {
      std::lock_guard<std::mutex> guard(mutex_);
      // With no capacity nothing is kept, and the caller alone has the entry.
      if (capacity_ > 0) {
        Forget(entry->key, &gone);
        table_[entry->key] = entry;
        entry->in_table = true;
        charge_ += charge;
        while (charge_ > capacity_ && !unused_.empty()) Forget(unused_.front()->key, &gone);
      }
    }
    for (Entry* old : gone) Delete(old);
    return entry;
  }

  Handle* Lookup(const Slice& key) override {
    std::lock_guard<std::mutex> guard(mutex_);
    const auto found = table_.find(key.ToString());
    if (found == table_.end()) return nullptr;
    Entry* entry = found->second;
    if (entry->users++ == 0) unused_.erase(entry->place);
    return entry;
  }

  void Release(Handle* handle) override {
    Entry* entry = static_cast<Entry*>(handle);
    std::list<Entry*> gone;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (--entry->users == 0) {
        if (!entry->in_table) {
          gone.push_back(entry);
        } else {
          entry->place = unused_.insert(unused_.end(), entry);
          while (charge_ > capacity_ && !unused_.empty()) Forget(unused_.front()->key, &gone);
        }
      }
    }
    for (Entry* old : gone) Delete(old);
  }

  void* Value(Handle* handle) override { return static_cast<Entry*>(handle)->value; }

  void Erase(const Slice& key) override {
    std::list<Entry*> gone;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      Forget(key.ToString(), &gone);
    }
    for (Entry* old : gone) Delete(old);
  }

  uint64_t NewId() override {
    std::lock_guard<std::mutex> guard(mutex_);
    return ++last_id_;
  }

  void Prune() override {
    std::list<Entry*> gone;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      while (!unused_.empty()) Forget(unused_.front()->key, &gone);
    }
    for (Entry* old : gone) Delete(old);
  }

  size_t TotalCharge() const override {
    std::lock_guard<std::mutex> guard(mutex_);
    return charge_;
  }

  size_t TerraceCapacity() const override { return capacity_; }

 private:
  struct Entry : Handle {
    Entry(const Slice& k, void* v, size_t c, void (*d)(const Slice&, void*))
        : key(k.ToString()), value(v), charge(c), deleter(d) {}

    const std::string key;
    void* const value;
    const size_t charge;
    void (*const deleter)(const Slice& key, void* value);
    size_t users = 1;
    bool in_table = false;
    // Its place among the unused ones, if it is one.
    std::list<Entry*>::iterator place;
  };

  // Takes the entry of `key` out of the table; to `gone`, if nobody uses it. The copy of the key is for callers whose key is
  // that of the entry.
  void Forget(const std::string key, std::list<Entry*>* gone) {
    const auto found = table_.find(key);
    if (found == table_.end()) return;
    Entry* entry = found->second;
    table_.erase(found);
    entry->in_table = false;
    charge_ -= entry->charge;
    if (entry->users == 0) {
      unused_.erase(entry->place);
      gone->push_back(entry);
    }
  }

  static void Delete(Entry* entry) {
    (*entry->deleter)(entry->key, entry->value);
    delete entry;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry*> table_;
  std::list<Entry*> unused_;
  size_t charge_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace terrace

inline Cache* NewLRUCache(size_t capacity) { return new terrace::LruCache(capacity); }

}  // namespace leveldb

#endif
