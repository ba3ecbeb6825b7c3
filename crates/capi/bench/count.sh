#!/usr/bin/env bash
# What C costs in instructions of one operation, counted by callgrind, for machines that are not quiet: the work of bench/cost.sh, by
# the difference of two runs of different length. A put has its share of the flush and the compaction.
#
#   bench/count.sh
#
# RUST and C are the two programs, if they are built already.
set -eu -o pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "${RUST:-}" ]; then
    cargo build --locked --release --example cost
    RUST=$target/release/examples/cost
fi
if [ -z "${C:-}" ]; then
    CARGO_TARGET_DIR=$target make --quiet install PREFIX="$scratch/prefix"
    export PKG_CONFIG_PATH=$scratch/prefix/lib/pkgconfig LD_LIBRARY_PATH=$scratch/prefix/lib
    C=$scratch/cost
    # shellcheck disable=SC2046
    cc -O2 -o "$C" bench/cost.c $(pkg-config --cflags --libs terrace)
fi

# Instructions of a whole run: way, records, lookups, scans.
count() {
    local command=("$C" "$1")
    [ "$1" = rust ] && command=("$RUST")
    rm -rf "$scratch/store"
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "${command[@]}" "$scratch/store" "$2" "$3" "$4" 2>&1 > /dev/null |
        sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

printf '| instructions | put | get | step |\n| --- | --- | --- | --- |\n'
for way in rust terrace leveldb; do
    base=$(count $way 20000 20000 1)
    # Each lookup is made twice.
    get=$((($(count $way 20000 60000 1) - base) / 80000))
    step=$((($(count $way 20000 20000 11) - base) / 200000))
    put=$((($(count $way 40000 20000 1) - base) / 20000 - step))
    printf '| %s | %d | %d | %d |\n' $way $put $get $step
done
