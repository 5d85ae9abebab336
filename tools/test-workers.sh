#!/bin/sh
# Prints how many test processes suit this machine: two for each core, since tests wait half of their time, and 2 GB of
# memory for each. `test-workers.sh 1`: one for each core, for tests that do not wait.
set -eu
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
if [ -r /proc/meminfo ]; then
    gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
else
    gigabytes=$(($(sysctl -n hw.memsize 2>/dev/null || echo 4294967296) / 1073741824))
fi
workers=$((cores * ${1:-2}))
[ "$workers" -le $((gigabytes / 2)) ] || workers=$((gigabytes / 2))
[ "$workers" -ge 1 ] || workers=1
echo "$workers"
