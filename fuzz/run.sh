#!/bin/sh
# Builds the fuzz targets as cargo-fuzz would, and runs them (all, or those named) for SECONDS_EACH seconds.
set -eu
cd "$(dirname "$0")"
target_dir=${CARGO_TARGET_DIR:-target}
triple=$(rustc +nightly -vV | sed -n 's/^host: //p')

RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    cargo +nightly build --release --target "$triple" --target-dir "$target_dir"

for target in ${*:-$(sed -n 's/^name = "\([a-z]*\)"$/\1/p' Cargo.toml)}; do
    mkdir -p "corpus/$target" "artifacts/$target"
    for golden in ../tests/format/v1/*.hex; do
        grep -v '^#' "$golden" | xxd -r -p > "corpus/$target/$(basename "$golden" .hex)"
    done
    echo "== $target"
    "$target_dir/$triple/release/$target" "corpus/$target" -artifact_prefix="artifacts/$target/" \
        -max_total_time="${SECONDS_EACH:-20}" -rss_limit_mb=512 -timeout=5 -print_final_stats=1 \
        > "artifacts/$target/log" 2>&1 || { tail -40 "artifacts/$target/log"; exit 1; }
    sed -n -e 's/^stat::\(number_of_executed_units\|peak_rss_mb\)/\1/p' "artifacts/$target/log"
done
