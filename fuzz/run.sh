#!/bin/sh
# Builds the fuzz targets as cargo-fuzz would, and runs them (all, or those named) for SECONDS_EACH seconds.
# SANITIZER=none builds without AddressSanitizer and the tracing of comparisons: `operations` is five times as fast then.
# CODEGEN_UNITS=16 builds on all processors, and makes slower fuzzers.
# With MINIMISE=1 it takes what was found over into the corpus that is kept, as far as that covers more, and fuzzes nothing.
set -eu
cd "$(dirname "$0")"
target_dir=${CARGO_TARGET_DIR:-target}
triple=$(rustc +nightly -vV | sed -n 's/^host: //p')

flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Ccodegen-units=${CODEGEN_UNITS:-1}"
if [ "${SANITIZER:-address}" = none ]; then
    target_dir=$target_dir/plain
else
    flags="$flags -Zsanitizer=address -Cllvm-args=-sanitizer-coverage-trace-compares"
fi
RUSTFLAGS=$flags cargo +nightly build --release --target "$triple" --target-dir "$target_dir"

# The golden bytes: decoders begin with them, whether or not the corpus still has them.
mkdir -p found/golden
for golden in ../tests/format/v1/*.hex; do
    grep -v '^#' "$golden" | xxd -r -p > "found/golden/$(basename "$golden" .hex)"
done

# What was wrong, and where the input lies; the rest is in the log.
fail() {
    grep -A 8 'panicked at' "$log" || true
    tail -12 "$log"
    exit 1
}

for target in ${*:-$(sed -n 's/^name = "\([a-z]*\)"$/\1/p' Cargo.toml)}; do
    corpus=corpus/$target found=found/$target log=artifacts/$target/log
    fuzzer=$target_dir/$triple/release/$target
    mkdir -p "$corpus" "$found" "artifacts/$target"
    case $target in
        # Some fifty operations are a life; longer ones are only slower. Threads that are about to end look like leaks. Of what
        # AddressSanitizer does, stacks of allocations and stacks in the heap take longest.
        operations)
            limits="-max_len=128 -detect_leaks=0"
            # What is covered counts, not how often: that would keep nearly every life.
            merge=-use_counters=0
            asan=malloc_context_size=0:detect_stack_use_after_return=0 ;;
        *)
            limits=-max_len=4096
            merge=
            asan=${ASAN_OPTIONS:-} ;;
    esac
    echo "== $target"
    if [ "${MINIMISE:-0}" = 1 ]; then
        rm -rf found/merged && mkdir found/merged
        # shellcheck disable=SC2086
        ASAN_OPTIONS=$asan "$fuzzer" -set_cover_merge=1 $merge $limits -rss_limit_mb=1024 \
            found/merged "$corpus" "$found" > "$log" 2>&1 || fail
        rm -rf "$corpus" "$found" && mv found/merged "$corpus"
        echo "$(ls "$corpus" | wc -l) inputs, $(cat "$corpus"/* | wc -c) bytes"
        continue
    fi
    # New inputs go to the first directory. An input has a minute, in real time: the machine may be busy with other things.
    # shellcheck disable=SC2086
    ASAN_OPTIONS=$asan "$fuzzer" "$found" "$corpus" found/golden $limits -artifact_prefix="artifacts/$target/" \
        -max_total_time="${SECONDS_EACH:-20}" -rss_limit_mb=512 -timeout=60 -print_final_stats=1 \
        > "$log" 2>&1 || fail
    sed -n -e 's/^stat::\(number_of_executed_units\|average_exec_per_sec\|peak_rss_mb\)/\1/p' "$log"
done
