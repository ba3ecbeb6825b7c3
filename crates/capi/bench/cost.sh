#!/usr/bin/env bash
# What C costs: the same puts, gets and steps in Rust, through terrace.h and through leveldb/c.h, in turns. Prints medians in
# nanoseconds, and the median of the ratios to Rust of the same round.
#
#   bench/cost.sh [ROUNDS [RECORDS [LOOKUPS]]]
set -eu -o pipefail
cd "$(dirname "$0")/.."

rounds=${1:-11} records=${2:-300000} lookups=${3:-1000000}
target=${CARGO_TARGET_DIR:-target}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cargo build --locked --release --example cost
CARGO_TARGET_DIR=$target make --quiet install PREFIX="$scratch/prefix"
export PKG_CONFIG_PATH=$scratch/prefix/lib/pkgconfig LD_LIBRARY_PATH=$scratch/prefix/lib
# shellcheck disable=SC2046
cc -O2 -o "$scratch/cost" bench/cost.c $(pkg-config --cflags --libs terrace)

turn() {
    local dir=$scratch/store
    case $1 in
        rust) "$target/release/examples/cost" "$dir" "$records" "$lookups" 5 ;;
        *) "$scratch/cost" "$1" "$dir" "$records" "$lookups" 5 ;;
    esac | sed "s/^/$2 $1 /" >> "$scratch/results"
    rm -rf "$dir"
}

for round in $(seq "$rounds"); do
    # Every other round in the opposite order.
    if [ $((round % 2)) -eq 1 ]; then order="rust terrace leveldb"; else order="leveldb terrace rust"; fi
    for way in $order; do turn "$way" "$round"; done
    printf 'round %d of %d\n' "$round" "$rounds" >&2
done

awk '
    { value[$1, $2, $3] = $4; if ($1 > rounds) rounds = $1 }
    function median(way, what, relative,    n, i, j, x, sorted) {
        for (n = 1; n <= rounds; n++) {
            x = value[n, way, what] / (relative ? value[n, "rust", what] : 1)
            for (i = n - 1; i >= 1 && sorted[i] > x; i--) sorted[i + 1] = sorted[i]
            sorted[i + 1] = x
        }
        return (sorted[int((rounds + 1) / 2)] + sorted[int(rounds / 2) + 1]) / 2
    }
    END {
        print "| | Rust | terrace.h | ratio | leveldb/c.h | ratio |"
        print "| --- | --- | --- | --- | --- | --- |"
        split("put get step", whats, " ")
        for (k = 1; k <= 3; k++) {
            what = whats[k]
            printf "| %s, ns | %.0f | %.0f | %.3f | %.0f | %.3f |\n", what, median("rust", what), median("terrace", what),
                median("terrace", what, 1), median("leveldb", what), median("leveldb", what, 1)
        }
    }' "$scratch/results"
