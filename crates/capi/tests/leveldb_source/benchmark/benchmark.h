// For LevelDB's db_test: the names of the library for benchmarks, of which it has one that is not run.

#ifndef TERRACE_TESTS_BENCHMARK_H
#define TERRACE_TESTS_BENCHMARK_H

#include <cstdint>

namespace benchmark {

class State {
 public:
  int64_t range(int) const { return 0; }
  int64_t iterations() const { return 0; }
  int* begin() { return nullptr; }
  int* end() { return nullptr; }
};

class Benchmark {
 public:
  explicit Benchmark(void (*)(State&)) {}
  Benchmark* operator->() { return this; }
  Benchmark& Arg(int64_t) { return *this; }
};

inline void RunSpecifiedBenchmarks() {}

}  // namespace benchmark

#define BENCHMARK(function) static benchmark::Benchmark benchmark_of_##function = benchmark::Benchmark(function)

#endif
