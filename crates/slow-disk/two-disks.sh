#!/bin/sh
# Measures a store on a fast and a slow disk: bulk random writes, and YCSB A, C and E on more data than memory, by placer.
#
#     two-disks.sh SLOW_DISK TERRACE DIRECTORY [ROUNDS]
#
# Needs root, cgroups of version 1 and jq. The fast disk has 4.5 times the bandwidth and requests a second of the slow one. Page cache and
# process have 320 MB together; the store has 1 GB of records. The configurations take turns in each round, and the last line of
# each is what DIRECTORY/two-disks.json holds of it.
set -eu

slow_disk=$(realpath "$1")
terrace=$(realpath "$2")
results=$3
rounds=${4:-1}
records=${RECORDS:-1000000}
seconds=${SECONDS_EACH:-20}

mkdir -p "$results"
group=/sys/fs/cgroup/memory/two-disks-$$
mkdir "$group"
trap 'rmdir "$group"' EXIT
echo 320000000 >"$group/memory.limit_in_bytes"

# NAME PROFILE STORE: the store is on the fast disk, {}, on the slow one, {2}, or on both.
run() {
    name=$1 profile=$2
    shift 2
    echo "round $round: $name" >&2
    # The group holds the command alone, so that nobody else meets its limit.
    sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" \
        "$slow_disk" --size-mb 8000 --write-mb 90 --read-mb 180 --write-iops 4500 --read-iops 9000 \
        --also size-mb=8000,write-mb=20,read-mb=40,write-iops=1000,read-iops=2000,sync-ms=1 -- \
        "$terrace" bench ycsb --profile "$profile" --memory-bytes 96000000 "$@" --phases load,a,c,e \
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
