#!/usr/bin/env bash
# Measures what limits hold, with fio, as a row of the table in README.md each. Needs root, fio and a built slow-disk:
#
#   measure.sh target/release/slow-disk
set -eu
slow_disk=$(realpath "$1")
seconds=${SECONDS_EACH:-5}

# One figure of a run of fio on the volume: the field of its terse output, divided.
measure() {
    local field=$1 divisor=$2
    shift 2
    fio --minimal --name=x --directory="$SLOW_DISK" --size=256m --time_based --runtime="$seconds" "$@" |
        awk -F';' -v field="$field" -v divisor="$divisor" '{ printf " %.*f |", ($field / divisor < 10 ? 1 : 0), $field / divisor }'
}

# Columns: direct writes, buffered ones with a sync at the end, buffered ones that the kernel writes back, direct reads in
# MB/s; direct writes and reads of 4 KiB at random, appends and overwrites with a sync each, per second.
row() {
    local read_kb=7 read_iops=8 write_kb=48 write_iops=49 started bytes
    measure $write_kb 976.5625 --rw=write --bs=1m --direct=1
    measure $write_kb 976.5625 --rw=write --bs=1m --end_fsync=1 --time_based=0 --size=100m --runtime=0
    started=$(date +%s%N)
    dd if=/dev/zero of="$SLOW_DISK/written-back" bs=1M count=100 status=none
    sync -f "$SLOW_DISK"
    bytes=$((100 << 20))
    awk -v bytes=$bytes -v nanos=$(($(date +%s%N) - started)) 'BEGIN { printf " %.0f |", bytes * 1000 / nanos }'
    # What has never been written is read without the device.
    dd if=/dev/zero of="$SLOW_DISK/filled" bs=1M count=64 oflag=direct status=none
    measure $read_kb 976.5625 --rw=read --bs=1m --direct=1 --filename=filled --size=64m
    measure $write_iops 1 --rw=randwrite --bs=4k --direct=1 --numjobs=4 --group_reporting
    measure $read_iops 1 --rw=randread --bs=4k --direct=1 --numjobs=4 --group_reporting --filename=filled --size=64m
    rm -f "$SLOW_DISK"/x.*
    measure $write_iops 1 --rw=write --bs=4k --fdatasync=1 --filename=appended
    measure $write_iops 1 --rw=write --bs=4k --fdatasync=1 --filename=appended --size=1m
    printf '\n'
}

if [ -n "${SLOW_DISK:-}" ]; then
    row
    exit
fi
for limits in "" "--write-mb 20 --read-mb 40" "--write-iops 200 --read-iops 400" "--sync-ms 5" \
    "--write-mb 20 --read-mb 40 --write-iops 200 --read-iops 400 --sync-ms 5"; do
    printf '| `%s` |' "${limits:-none}"
    # Word by word.
    # shellcheck disable=SC2086
    "$slow_disk" --size-mb 2048 $limits -- "$0" "$slow_disk"
done
