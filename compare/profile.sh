#!/usr/bin/env bash
# What one operation costs each engine, as a table in Markdown: instructions, cache misses and calls of the allocator, counted
# by callgrind; system calls, counted by strace. Nothing is timed, so it does not matter what else runs.
#
#   compare/profile.sh [ENGINE...]
#
# PHASES, RECORDS, VALUE_BYTES, OPERATIONS and WARM_UP (operations before those that count) say what is run; LL is what
# valgrind simulates behind the first level: SIZE,WAYS,LINE, by default the core's own second level. OUT keeps the profiles,
# for callgrind_annotate. Valgrind and strace take about a minute for each engine and phase.
set -euo pipefail
cd "$(dirname "$0")"
engines=${*:-terrace leveldb rocksdb fjall lmdb}
phases=${PHASES:-load-r get-u-1 scan-10 ycsb-a}
records=${RECORDS:-300000}
operations=${OPERATIONS:-50000}
warm_up=${WARM_UP:-50000}
size="--records $records --value-bytes ${VALUE_BYTES:-100}"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=${OUT:-$scratch/out}
mkdir -p "$out" "$scratch/loaded"

# The geometry of a cache of this machine, as valgrind takes it.
cache() {
    printf '%s,%s,64' "$(getconf "$1_SIZE")" "$(getconf "$1_ASSOC")"
}

caches="--D1=$(cache LEVEL1_DCACHE) --LL=${LL:-$(cache LEVEL2_CACHE)}"

# run ENGINE PHASE OPERATIONS COMMAND...: runs the phase under a command, on a copy of the loaded store; a load on none.
run() {
    local engine=$1 phase=$2 count=$3 before=$warm_up store=$scratch/store
    shift 3
    rm -rf "$store"
    case $phase in
        load-*) before=0 ;;
        *) cp -r "$scratch/loaded/$engine" "$store" ;;
    esac
    # shellcheck disable=SC2086
    "$@" "$program" --counted "$engine" "$phase" "$store" $size --warm-up $before --operations "$count"
}

# system_calls ENGINE PHASE OPERATIONS: of the whole process.
system_calls() {
    local file=$out/$1-$2-$3.strace
    run "$@" strace -f -qq -c -o "$file"
    awk '$NF == "total" { print $4 }' "$file"
}

# count ENGINE PHASE OPERATIONS: what those operations cost: instructions, misses of both levels, allocations, system calls.
count() {
    local file=$out/$1-$2.callgrind calls none
    rm -f "$file"*
    # The profile is cut where the function that does the operations that count begins and ends: part 2 is theirs. A pattern
    # takes one option alone, so there are two.
    # shellcheck disable=SC2086
    run "$@" valgrind --tool=callgrind --quiet --cache-sim=yes $caches --fair-sched=try \
        --dump-before='*operations_that_count*' --dump-after='*::operations_that_count' \
        --callgrind-out-file="$file" 2> "$file.log"
    calls=$(system_calls "$@")
    none=$(system_calls "$1" "$2" 0)
    awk -v calls=$((calls - none)) '
        /^totals:/ { instructions = $2; first = $6 + $7; last = $9 + $10 }
        # A name comes once, behind its number.
        /^c?fn=.* / { allocates[number()] = $2 ~ /^(malloc|calloc|realloc|memalign|posix_memalign|aligned_alloc)$/ }
        /^cfn=/ { callee = number() }
        /^calls=/ && allocates[callee] { split($1, call, "="); allocations += call[2] }
        function number() { return substr($1, index($1, "(")) }
        END { print instructions, first, last, allocations + 0, calls }' "$file.2"
}

cargo build --quiet --release
program=$(realpath "${CARGO_TARGET_DIR:-target}")/release/terrace-compare
for engine in empty $engines; do
    "$program" --counted "$engine" load-r "$scratch/loaded/$engine" $size --operations "$records"
done
printf '| phase | engine | instructions | D1 misses | LL misses | allocations | system calls |\n'
printf '| --- | --- | --- | --- | --- | --- | --- |\n'
for phase in $phases; do
    case $phase in load-*) each=$records ;; *) each=$operations ;; esac
    load_generator=$(count empty "$phase" "$each")
    for engine in $engines; do
        counted=$(count "$engine" "$phase" "$each")
        echo "$counted $load_generator" | awk -v each="$each" -v name="$phase | $engine" '{
            printf "| %s", name
            for (i = 1; i <= 5; i++) printf(i == 1 ? " | %.0f" : " | %.2f", ($i - $(i + 5)) / each)
            print " |" }'
    done
done
