#!/bin/sh
# Measures a store on a fast and a slow disk: bulk random writes, and YCSB A, C and E on more data than memory, by placer.
#
#     two-disks.sh SLOW_DISK TERRACE DIRECTORY [ROUNDS]
#
# Needs root, cgroups of version 1 and jq. The slow disk writes RATE megabytes a second, and reads twice as many; the fast disk has 4.5
# times the bandwidth and requests a second. The store has RECORDS records of 1 KB; it has about a tenth of that for its memory, and
# all together, the page cache too, about a third. The configurations take turns in each round. DIRECTORY/two-disks.json has all
# results, and a line of each is printed at the end: operations a second, those of the load with its drain.
set -eu

slow_disk=$(realpath "$1")
terrace=$(realpath "$2")
results=$3
rounds=${4:-1}
rate=${RATE:-20}
records=${RECORDS:-1000000}
seconds=${SECONDS_EACH:-20}

mkdir -p "$results"
group=/sys/fs/cgroup/memory/two-disks-$$
mkdir "$group"
trap 'rmdir "$group"' EXIT
echo $((30000000 + records * 300)) >"$group/memory.limit_in_bytes"

# NAME PROFILE STORE: the store is on the fast disk, {}, on the slow one, {2}, or on both.
run() {
    name=$1 profile=$2
    shift 2
    echo "round $round: $name" >&2
    # The group holds the command alone, so that nobody else meets its limit.
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" \
        "$slow_disk" --size-mb 8000 --write-mb $((rate * 9 / 2)) --read-mb $((rate * 9)) \
        --write-iops $((rate * 225)) --read-iops $((rate * 450)) \
        --also "size-mb=8000,write-mb=$rate,read-mb=$((rate * 2)),write-iops=$((rate * 50)),read-iops=$((rate * 100)),sync-ms=1" -- \
        "$terrace" bench ycsb --profile "$profile" --memory-bytes $((records * 96)) "$@" --phases load,a,c,e \
        --records "$records" --value-bytes 1000 --seconds "$seconds" --threads 4 --seed "$round" \
        --json "$results/$name.$round.json" >&2
    # The course of the run is left out; the directories of the disks are no part of the command.
    jq --arg name "$name" 'del(.phases[].recording)
        | .command |= gsub("/run/terrace-slow-disk/[0-9]+/volume-2"; "SLOW")
        | .command |= gsub("/run/terrace-slow-disk/[0-9]+/volume"; "FAST")
        | .command |= sub(" --json [^ ]*"; "")
        | {configuration: $name} + .' "$results/$name.$round.json" >"$results/$name.$round.stripped"
    rm "$results/$name.$round.json"
}

for round in $(seq "$rounds"); do
    run fast-alone default:placer=home --db '{}/store'
    run dynamic default --db '{}/store' --device '{2}/store'
    run mod6 default:placer=mod6 --db '{}/store' --device '{2}/store'
    run mod4 default:placer=mod4 --db '{}/store' --device '{2}/store'
    run mod2 default:placer=mod2 --db '{}/store' --device '{2}/store'
    run slow-alone default:placer=home --db '{2}/store'
done
jq --slurp . "$results"/*.stripped >"$results/two-disks.json"
jq -r '.[] | "\(.seed) \(.configuration): " + (.phases | map("\(.workload) " +
    (if .drain_s > 0 then .operations / (.seconds + .drain_s) else .ops_per_s end | floor | tostring)) | join(", "))' \
    "$results/two-disks.json"
