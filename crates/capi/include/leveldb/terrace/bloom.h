// A Bloom filter, for programs that make filters by themselves.

#ifndef TERRACE_LEVELDB_TERRACE_BLOOM_H
#define TERRACE_LEVELDB_TERRACE_BLOOM_H

#include <cstdint>

#include "leveldb/filter_policy.h"

namespace leveldb {
namespace terrace {

// Bits, and behind them a byte with the number of probes.
class Bloom final : public FilterPolicy {
 public:
  explicit Bloom(int bits_per_key) : bits_per_key_(bits_per_key < 1 ? 1 : bits_per_key) {
    // The number of probes with the fewest false positives is the bits times the logarithm of two.
    const int best = static_cast<int>(bits_per_key_ * 0.69);
    probes_ = best < 1 ? 1 : best > 30 ? 30 : best;
  }

  const char* Name() const override { return "terrace.Bloom"; }

  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    size_t bits = static_cast<size_t>(n) * static_cast<size_t>(bits_per_key_);
    // Fewer would let too much through.
    if (bits < 64) bits = 64;
    const size_t bytes = (bits + 7) / 8;
    const size_t start = dst->size();
    dst->resize(start + bytes, 0);
    dst->push_back(static_cast<char>(probes_));
    for (int key = 0; key < n; key++) {
      Probe probe(keys[key]);
      for (int i = 0; i < probes_; i++) {
        const size_t at = probe.Next(bytes * 8);
        (*dst)[start + at / 8] = static_cast<char>((*dst)[start + at / 8] | (1 << (at % 8)));
      }
    }
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    if (filter.size() < 2) return false;
    const size_t bits = (filter.size() - 1) * 8;
    const int probes = static_cast<unsigned char>(filter[filter.size() - 1]);
    // Another kind of filter.
    if (probes > 30) return true;
    Probe probe(key);
    for (int i = 0; i < probes; i++) {
      const size_t at = probe.Next(bits);
      if ((filter[at / 8] & (1 << (at % 8))) == 0) return false;
    }
    return true;
  }

  int TerraceBitsPerKey() const override { return bits_per_key_; }

 private:
  // The places of a key: two halves of one hash give as many as are wanted (Kirsch, Mitzenmacher 2006).
  class Probe {
   public:
    explicit Probe(const Slice& key) {
      // FNV-1a, then the mixing of SplitMix64, for FNV's high bits are weak.
      uint64_t hash = 0xcbf29ce484222325u;
      for (size_t i = 0; i < key.size(); i++) {
        hash = (hash ^ static_cast<unsigned char>(key[i])) * 0x100000001b3u;
      }
      hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
      hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
      at_ = hash ^ (hash >> 31);
      step_ = (at_ >> 32) | 1;
    }

    size_t Next(size_t bits) {
      const size_t here = static_cast<size_t>(at_ % bits);
      at_ += step_;
      return here;
    }

   private:
    uint64_t at_;
    uint64_t step_;
  };

  int bits_per_key_;
  int probes_;
};

}  // namespace terrace

inline const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) { return new terrace::Bloom(bits_per_key); }

}  // namespace leveldb

#endif
